//===- Compile.cpp - From an ONNX model to an artifact --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Compile.h"

#include "compiler/codegen/Backend.h"
#include "compiler/codegen/cpu/CpuBackend.h"
#include "compiler/codegen/cuda/CudaBackend.h"
#include "compiler/driver/PlansOfModel.h"
#include "compiler/driver/ReadModule.h"
#include "compiler/driver/Timing.h"
#include "compiler/driver/choose/ChooseZero.h"
#include "compiler/import/annotations/AnnotatedModel.h"
#include "compiler/model/Decision.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "dialects/support/Try.h"
#include "runtime/abi/DeviceKinds.h"
#include "runtime/abi/Text.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace partita;
using namespace partita::driver;

void driver::registerCompilerDialects(DialectRegistry &registry) {
  codegen::registerCpuBackend();
  codegen::cuda::registerCudaBackend();
  registry.insert<nn::NNDialect, dist::DistDialect, plan::PlanDialect,
                  func::FuncDialect>();
  codegen::registerCodegenDialects(registry);
}

std::string driver::getAnnotationsOverride(const PartitionOptions &options) {
  return !options.file.empty()        ? "--partition"
         : options.devices > 0        ? "--devices"
         : options.tensorParallel > 0 ? "--tensor-parallel"
         : options.replicas > 0       ? "--replicas"
         : options.stages > 0         ? "--stages"
                                      : "";
}

/// The names of the devices, e.g. "cpu:0".
static std::vector<std::string> getDeviceNames(const CompileOptions &options,
                                               int64_t count) {
  const std::string kind = options.partition.target.empty()
                               ? abi::getName(abi::DeviceKind::cpu)
                               : options.partition.target;
  std::vector<std::string> names;
  for (int64_t device = 0; device < count; ++device)
    names.push_back(kind + ":" + std::to_string(device));
  return names;
}

LogicalResult
driver::compileModel(MLIRContext &context, const CompileOptions &given,
                     llvm::raw_ostream &ir,
                     std::vector<pipeline::PlanSummary> &summaries) {
  context.loadAllAvailableDialects();
  const Location loc = UnknownLoc::get(&context);
  PartitionFacts facts = PARTITA_TRY(readPartitionFacts(loc, given.partition));
  const std::vector<std::string> &targets = facts.targets;
  CompileOptions options = given;
  if (!targets.empty()) {
    if (!options.target.empty() && options.partition.targets.empty() &&
        ArrayRef(targets) != ArrayRef(options.target))
      return emitError(loc) << "--target " << options.target << " and `targets`"
                            << " of the partition file contradict each other";
    options.target = targets.front();
    options.partition.target = codegen::splitTarget(options.target).first.str();
  }
  const bool choosesSchedule = facts.schedule == kAutoSchedule;
  if (choosesSchedule)
    options.partition.schedule = facts.schedule;
  if (targets.size() > 1 && !options.emitOnnx.empty())
    return emitError(loc) << "--emit-onnx: ONNX's annotations cannot say that "
                             "devices are of several kinds ("
                          << abi::namesText(targets)
                          << "); --emit-partition can";
  if (!options.train.optimizer.empty() &&
      !isModuleFile(options.import.modelPath))
    options.emit.trainedModel = options.import.modelPath;
  std::vector<CompileOptions> plans = getPlans(options);
  if (options.kind == EmitKind::parameters)
    plans.resize(1);
  ZeroChoice zeros;
  if (facts.zero == kAutoZero) {
    // Inference does not look at it.
    if (plans.front().learns())
      zeros = chooseZero(context, plans.front(), targets);
    for (CompileOptions &each : plans)
      each.partition.zero = zeros.level;
  }
  std::vector<std::unique_ptr<PlanCompilation>> compilations;
  std::vector<emit::CompiledPlan> compiled;
  for (auto [number, each] : llvm::enumerate(plans)) {
    if (number + 1 < plans.size())
      each.nodes = nullptr;
    if (number > 0)
      each.parameters = nullptr;
    // The first plan chooses for all.
    if (number > 0 && choosesSchedule)
      each.partition.schedule = compilations.front()->schedule;
    // Plans that share states have them on the same devices.
    if (each.autodiff.results == autodiff::LossResults::evaluation)
      followStages(*compilations.back(), each);
    else if (number > 0 && !options.states.empty())
      followStages(*compilations.front(), each);
    if (number > 0 && options.kind != EmitKind::artifact &&
        options.kind != EmitKind::decision && options.kind != EmitKind::summary)
      ir << "\n// -----\n\n";
    compilations.push_back(std::make_unique<PlanCompilation>(
        context, std::move(each), targets, static_cast<int>(number),
        static_cast<int>(plans.size())));
    PARTITA_TRY(compilations.back()->run(ir, summaries));
    if (number == 0 && !summaries.empty())
      summaries.front().zeros = std::move(zeros.tried);
    compiled.push_back(compilations.back()->take());
  }
  if (!options.emitOnnx.empty()) {
    const dist::Annotations &annotations =
        compilations.back()->getAnnotations();
    PARTITA_TRY(import::writeAnnotatedModel(
        options.import.modelPath, options.emitOnnx, annotations,
        getDeviceNames(options, annotations.devices),
        UnknownLoc::get(&context)));
  }
  if (options.kind != EmitKind::artifact)
    return success();
  if ((!options.train.optimizer.empty() || !options.states.empty()) &&
      failed(checkStates(compiled)))
    return failure();
  crash::AtPass at("writing the artifact");
  if (options.timing)
    options.timing->begin("writing the artifact");
  if (options.progress)
    options.progress("writing the artifact", 1, 1);
  return emit::emitArtifact(compiled, options.emit);
}
