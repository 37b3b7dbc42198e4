//===- RunFunction.cpp - Compile a function of nn ops and run it ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RunFunction.h"

#include "compiler/codegen/Codegen.h"
#include "compiler/codegen/Passes.h"
#include "compiler/driver/Compile.h"
#include "compiler/emit/Emit.h"
#include "compiler/fuse/Passes.h"
#include "compiler/pipeline/Passes.h"
#include "dialects/nn/NNDialect.h"
#include "runtime/capi/partita.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/ScopeExit.h"

#include <gtest/gtest.h>
#include <unistd.h>

using namespace mlir;

namespace partita::nn::test {

DialectRegistry getCompilerDialects() {
  DialectRegistry registry;
  driver::registerCompilerDialects(registry);
  return registry;
}

static LogicalResult compile(ModuleOp module, const std::string &path) {
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  fuse::FuseClustersPassOptions apart;
  apart.reference = true;
  pm.addPass(fuse::createFuseClustersPass(apart));
  pm.addPass(pipeline::createDistAssignBlocksPass());
  pm.addPass(pipeline::createDistAssignStagesPass());
  pm.addPass(pipeline::createDistChooseSchedulePass());
  pm.addPass(pipeline::createDistFormStagesPass());
  pm.addPass(fuse::createFormClustersPass());
  pm.addPass(codegen::createLowerClustersPass({/*reference=*/true}));
  pm.addPass(pipeline::createPlanGroupKernelsPass());
  pm.addPass(pipeline::createPlanBuildPass());
  pm.addPass(pipeline::createPlanPlacePass());
  pm.addPass(pipeline::createPlanReserveMemoryPass());
  pm.addPass(pipeline::createPlanVerifySchedulePass());
  if (failed(pm.run(module)))
    return failure();
  std::vector<emit::ObjectFile> objects;
  for (ModuleOp kernels : codegen::getKernelsModules(module)) {
    codegen::CodegenOptions options;
    options.levels = {abi::CpuLevel::x86_64_v3};
    options.optimize = false;
    auto compiled = codegen::compileKernels(kernels, options);
    if (failed(compiled))
      return failure();
    for (codegen::CompiledObject &object : *compiled)
      objects.push_back({object.level, std::move(object.bytes)});
  }
  emit::EmitOptions options;
  options.output = path;
  return emit::emitArtifact({{module, objects}}, options);
}

std::optional<std::vector<std::vector<char>>>
runFunction(ModuleOp module, const std::vector<std::vector<char>> &inputs) {
  auto function = *module.getOps<func::FuncOp>().begin();
  std::vector<std::vector<char>> results;
  for (Type type : function.getResultTypes())
    results.emplace_back(getByteSize(type));
  std::string path =
      ::testing::TempDir() + "sharded-" + std::to_string(::getpid());
  auto remove = llvm::scope_exit([&] { ::unlink(path.c_str()); });
  if (failed(compile(module, path))) {
    ADD_FAILURE() << "it does not compile";
    return std::nullopt;
  }
  partita_options options;
  partita_default_options(&options);
  options.threads = 1;
  options.pin = 0;
  partita_model *model = nullptr;
  auto close = llvm::scope_exit([&] { partita_close(model); });
  std::vector<const void *> in;
  std::vector<void *> out;
  for (const std::vector<char> &input : inputs)
    in.push_back(input.data());
  for (std::vector<char> &result : results)
    out.push_back(result.data());
  if (partita_open(path.c_str(), &options, &model) != PARTITA_OK ||
      partita_run(model, in.data(), 1, out.data()) != PARTITA_OK) {
    ADD_FAILURE() << partita_last_error();
    return std::nullopt;
  }
  return results;
}

} // namespace partita::nn::test
