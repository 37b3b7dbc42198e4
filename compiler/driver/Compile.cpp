//===- Compile.cpp - From an ONNX model to an artifact --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Compile.h"

#include "compiler/codegen/Codegen.h"
#include "compiler/codegen/cpu/CpuBackend.h"
#include "compiler/crash/Place.h"
#include "compiler/fuse/Passes.h"
#include "compiler/pipeline/MachineModel.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/simplify/Passes.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/plan/PlanDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace partita;
using namespace partita::driver;

void driver::registerCompilerDialects(DialectRegistry &registry) {
  codegen::registerCpuBackend();
  registry.insert<nn::NNDialect, dist::DistDialect, plan::PlanDialect,
                  func::FuncDialect>();
  codegen::registerCodegenDialects(registry);
}

namespace {
/// One compilation: the phases in their order.
class Compilation {
public:
  Compilation(MLIRContext &context, const CompileOptions &options)
      : context(context), options(options) {}

  LogicalResult run(llvm::raw_ostream &ir,
                    std::optional<pipeline::Summary> &summary);

private:
  void begin(llvm::StringLiteral name) {
    // The phase before ends first.
    place.reset();
    place.emplace(name);
    if (options.progress)
      options.progress(name, phase++, kPhases);
  }

  LogicalResult transform(llvm::function_ref<void(OpPassManager &)> addPasses) {
    // Verifies the module after every pass, and so the kernels too.
    PassManager pm(&context, ModuleOp::getOperationName());
    addPasses(pm);
    return pm.run(*module);
  }

  LogicalResult emit();

  static constexpr int kPhases = 6;
  MLIRContext &context;
  const CompileOptions &options;
  OwningOpRef<ModuleOp> module;
  int phase = 0;
  std::optional<crash::AtPass> place;
};
} // namespace

LogicalResult Compilation::emit() {
  std::vector<emit::ObjectFile> objects;
  if (ModuleOp kernels = codegen::getKernelsModule(*module)) {
    auto compiled = codegen::compileKernels(kernels, options.codegen);
    if (failed(compiled))
      return failure();
    for (codegen::CompiledObject &object : *compiled)
      objects.push_back({object.level, std::move(object.bytes)});
  }
  begin("writing the artifact");
  return emit::emitArtifact(*module, objects, options.emit);
}

LogicalResult Compilation::run(llvm::raw_ostream &ir,
                               std::optional<pipeline::Summary> &summary) {
  // A wrong file should not wait for a large model.
  if (failed(pipeline::MachineModel::load(UnknownLoc::get(&context),
                                          options.partition.machine, 1, 0)))
    return failure();
  begin("reading the model");
  import::ImportOptions imports = options.import;
  imports.recordTensors = !options.expose.nodes.empty();
  auto imported = import::importOnnxModel(context, imports);
  if (failed(imported))
    return failure();
  module = std::move(*imported);

  begin("simplifying and fusing");
  if (failed(transform([&](OpPassManager &pm) {
        if (options.expose.unfused)
          pm.addPass(pipeline::createExposeValuesPass({options.expose.nodes}));
        if (!options.reference)
          simplify::addSimplifyPasses(pm);
        else
          pm.addPass(createCSEPass()); // for what nobody reads
      })))
    return failure();
  if (options.kind == EmitKind::nn)
    return module->print(ir), success();

  begin("partitioning");
  if (failed(transform([&](OpPassManager &pm) {
        pm.addPass(fuse::createFuseClustersPass(
            {options.winograd, options.reference}));
        // What is computed together is decided: nothing changes any more.
        if (!options.expose.nodes.empty() && !options.expose.unfused)
          pm.addPass(pipeline::createExposeValuesPass({options.expose.nodes}));
        pipeline::addPartitionPasses(pm, options.partition);
      })))
    return failure();
  if (options.kind == EmitKind::stages)
    return module->print(ir), success();

  begin("choosing kernels and library calls");
  if (failed(transform([&](OpPassManager &pm) {
        pm.addPass(fuse::createFormClustersPass());
        codegen::addCodegenPasses(pm, options.reference);
      })))
    return failure();
  if (options.kind == EmitKind::clusters)
    return module->print(ir), success();

  if (failed(transform([&](OpPassManager &pm) {
        pipeline::addPlanPasses(pm, options.partition);
      })))
    return failure();
  summary = pipeline::summarize(*module);
  if (options.kind == EmitKind::plan)
    return module->print(ir), success();

  begin("compiling kernels");
  return emit();
}

LogicalResult driver::compileModel(MLIRContext &context,
                                   const CompileOptions &options,
                                   llvm::raw_ostream &ir,
                                   std::optional<pipeline::Summary> &summary) {
  context.loadAllAvailableDialects();
  return Compilation(context, options).run(ir, summary);
}
