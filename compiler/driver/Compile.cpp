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
#include "compiler/driver/CheckOptions.h"
#include "compiler/driver/PlanCompilation.h"
#include "compiler/driver/ReadModule.h"
#include "compiler/driver/Timing.h"
#include "compiler/driver/choose/MemoryFit.h"
#include "compiler/import/annotations/AnnotatedModel.h"
#include "compiler/model/Decision.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "dialects/support/Try.h"
#include "runtime/abi/DeviceKinds.h"
#include "runtime/abi/Text.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

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

/// The options of each plan: one for each combination of sizes, the last
/// dimension counting fastest. Each has one to learn and one to evaluate, if
/// the model is trained.
static std::vector<CompileOptions> getPlans(const CompileOptions &options) {
  std::vector<CompileOptions> plans = {options};
  if (!options.train.optimizer.empty()) {
    plans.front().autodiff.results = autodiff::LossResults::parts;
    plans.front().partition.microBatches = options.train.microBatches;
    plans.push_back(plans.front());
    plans.back().autodiff.results = autodiff::LossResults::evaluation;
    plans.front().partition.recompute = options.train.recompute;
    plans.front().partition.recomputeNodes = options.train.recomputeNodes;
  } else if (!options.autodiff.loss.empty() &&
             options.partition.microBatches > 1) {
    plans.front().autodiff.results = autodiff::LossResults::parts;
    plans.front().train.microBatches = options.partition.microBatches;
  }
  for (const DimensionSizes &dimension : options.dimensions) {
    std::vector<CompileOptions> before = std::move(plans);
    plans.clear();
    for (const CompileOptions &plan : before)
      for (int64_t size : dimension.sizes) {
        plans.push_back(plan);
        plans.back().import.dims[dimension.name] = size;
      }
  }
  return plans;
}

/// Makes the plan that evaluates have each state where the plan that learns has
/// it, and as many micro-batches a step.
static void followStages(const PlanCompilation &learns,
                         CompileOptions &options) {
  options.shards = learns.shards;
  options.stateTypes = learns.stateTypes;
  if (!options.train.optimizer.empty())
    options.trained = learns.trained;
  options.partition.emitFile.clear();
  options.partition.schedule = learns.evaluationSchedule;
  options.partition.microBatches = static_cast<int>(learns.microBatches);
  if (learns.devicesOfStages.size() < 2)
    return;
  options.stagesOfNodes = learns.stagesOfNodes;
  options.stagesOfStates = learns.stagesOfStates;
  options.devicesOfStages = learns.devicesOfStages;
  PartitionOptions &partition = options.partition;
  partition.axes = learns.axes;
  partition.dataParallel = partition.tensorParallel = 0;
  partition.replicas =
      learns.replicas > 1 ? static_cast<int>(learns.replicas) : 0;
  partition.zero = learns.zero;
  // Axes say it, if there are any.
  partition.devices =
      learns.axes.empty()
          ? static_cast<int>(1 + *llvm::max_element(learns.devicesOfStages))
          : 0;
  partition.file.clear();
  partition.targets = learns.targetsOfDevices;
  partition.stages = 0;
  partition.memory = 0;
}

/// Whether all plans have a state on the same device.
static LogicalResult checkStates(ArrayRef<emit::CompiledPlan> plans) {
  llvm::StringMap<unsigned> programOf;
  for (const emit::CompiledPlan &plan : plans)
    for (auto [number, program] :
         llvm::enumerate(ModuleOp(plan.module).getOps<plan::ProgramOp>()))
      for (auto slot : program.getBody().front().getOps<plan::SlotOp>()) {
        if (slot.getSpace() != plan::Space::state)
          continue;
        auto [it, isNew] = programOf.try_emplace(*slot.getWeight(),
                                                 static_cast<unsigned>(number));
        if (it->second != number)
          return program.emitError()
                 << "one plan has '" << *slot.getWeight() << "' on device "
                 << it->second << ", and another on device " << number
                 << ": name blocks of whole nodes in a partition file";
      }
  return success();
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
    const dist::Annotations &annotations = compilations.back()->annotations;
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
