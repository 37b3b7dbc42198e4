//===- PlanCompilation.cpp - From a model to one plan ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/PlanCompilation.h"

#include "compiler/analysis/Samples.h"
#include "compiler/driver/CheckOptions.h"
#include "compiler/driver/ImportPlan.h"
#include "compiler/driver/Timing.h"
#include "compiler/driver/choose/MemoryFit.h"
#include "compiler/model/Decision.h"
#include "compiler/passes/Phases.h"
#include "compiler/pipeline/partition/StageOrder.h"
#include "compiler/pipeline/phases/StateHomes.h"
#include "compiler/shard/CollectAnnotations.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/nn/CheckAttr.h"
#include "dialects/nn/grad/GradientAttr.h"
#include "dialects/plan/PlanDialect.h"
#include "dialects/support/Try.h"
#include "runtime/abi/Text.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace partita::driver {

/// Where the IR of a plan is written: in a folder of its own, if there are
/// several.
static std::string getDumpFolder(const CompileOptions &options, int plan,
                                 int plans) {
  if (options.dumpPhases.empty() || plans == 1)
    return options.dumpPhases;
  return options.dumpPhases + "/plan" + std::to_string(plan);
}

PlanCompilation::PlanCompilation(MLIRContext &context, CompileOptions options,
                                 std::vector<std::string> targets, int plan,
                                 int plans)
    : context(context), options(std::move(options)),
      targets(std::move(targets)), plan(plan), plans(plans),
      runner(getDumpFolder(this->options, plan, plans), this->options.timing,
             this->options.report) {}

emit::CompiledPlan PlanCompilation::take() {
  place.reset();
  return {*module, std::move(objects)};
}

void PlanCompilation::begin(Part part) {
  static constexpr StringLiteral names[] = {
      "reading the model", "simplifying and fusing", "partitioning",
      "choosing kernels and library calls", "compiling kernels"};
  constexpr int count = std::size(names);
  // The part before ends first.
  place.reset();
  place.emplace(names[part]);
  if (options.timing)
    options.timing->begin(names[part]);
  if (options.progress)
    options.progress(names[part], plan * count + part, plans * count + 1);
}

LogicalResult PlanCompilation::run(llvm::raw_ostream &ir,
                                   std::vector<pipeline::PlanSummary> &all) {
  const Location loc = UnknownLoc::get(&context);
  PARTITA_TRY(checkTargets(loc, options, targets));
  cores = PARTITA_TRY(checkMachine(loc, options, targets));

  begin(reading);
  auto facts = PARTITA_TRY(readPartitionFacts(loc, options.partition));
  PARTITA_TRY(checkPrecision(loc, options, targets));
  PARTITA_TRY(checkTraining(loc, options, targets));
  replicas = facts.replicas;
  if (replicas > 1 && !options.states.empty())
    return emitError(loc) << "--state " << options.states.front()
                          << ": replicas that share a batch (--replicas) keep "
                             "no states";
  module = PARTITA_TRY(importPlan(context, options, replicas));
  stateTypes = options.stateTypes;
  if (stateTypes.empty())
    for (auto weight : module->getOps<nn::WeightOp>())
      if (weight.isCarried())
        stateTypes[weight.getOrigin().str()] = weight.getType();
  if (options.nodes)
    options.nodes->readModel(*module);
  PARTITA_TRY(runner.write(*module, "imported"));
  if (options.kind == EmitKind::imported)
    return printModule(*module, ir), success();

  PARTITA_TRY(runModelPhases());
  if (options.kind == EmitKind::stages || options.kind == EmitKind::clusters ||
      options.kind == EmitKind::nn)
    return printModule(*module, ir), success();
  if (options.kind == EmitKind::decision ||
      options.kind == EmitKind::parameters)
    return success();
  if (std::optional<pipeline::PlanSummary> summary =
          pipeline::summarize(*module)) {
    remarkCores(*summary);
    remarkBubble(*summary);
    summary->schedules = triedSchedules;
    all.push_back(std::move(*summary));
  }
  if (options.kind == EmitKind::plan)
    return printModule(*module, ir), success();
  if (options.kind == EmitKind::summary)
    return success();

  begin(compiling);
  return compileKernels();
}

LogicalResult PlanCompilation::runModelPhases() {
  begin(simplifying);
  const ModelFacts facts = {(*module)->hasAttr(dist::kAnnotationsAttr),
                            replicas, targets.size()};
  for (const PhaseRun &phase : getModelPhases(options, facts)) {
    PARTITA_TRY(runner.run(*module, phase));
    if (phase.name != passes::kDifferentiate.name)
      continue;
    if (options.parameters)
      *options.parameters = autodiff::listParameters(*module);
    if (plan == 0 && options.autodiff.trainOnly.empty())
      remarkParameters();
  }
  if (options.kind == EmitKind::nn || options.kind == EmitKind::parameters)
    return success();

  begin(partitioning);
  for (const PhaseRun &phase : getShardPhases(options, facts))
    PARTITA_TRY(runner.run(*module, phase));
  const size_t written = runner.count();
  auto partition = [&](ModuleOp whole, const PartitionOptions &tried,
                       EmitKind until, bool isAdvice) {
    runner.rewind(written);
    return runPlanPhases(whole, tried, until, isAdvice);
  };
  if (options.partition.schedule == kAutoSchedule) {
    triedSchedules = chooseSchedule(*module, options, partition);
    schedule = options.partition.schedule = triedSchedules.front().schedule;
    if (!triedSchedules.front().fits && triedSchedules.front().error.empty()) {
      InFlightDiagnostic remark = emitRemark(UnknownLoc::get(&context));
      remark << "no schedule fits; '" << schedule
             << "' needs least. Of a device they need: ";
      for (auto [index, each] : llvm::enumerate(triedSchedules))
        remark << (index ? ", " : "") << each.schedule << " "
               << (each.error.empty() ? abi::bytesText(each.peakBytes)
                                      : "unknown");
    }
  }
  return partitionToFit(module, options, targets, partition);
}

LogicalResult PlanCompilation::runPlanPhases(ModuleOp module,
                                             const PartitionOptions &partition,
                                             EmitKind until, bool isAdvice) {
  PhaseRunner silent("", options.timing, nullptr);
  for (const PhaseRun &phase : getPlanPhases(options, partition, until)) {
    if (phase.name == passes::kLower.name)
      begin(lowering);
    PARTITA_TRY((isAdvice ? silent : runner).run(module, phase));
    if (phase.name == passes::kDecide.name && !isAdvice)
      readDecision(module);
  }
  return success();
}

/// How tensors are cut: those of the model, and its states.
static DictionaryAttr withStates(func::FuncOp function) {
  auto shards = function->getAttrOfType<DictionaryAttr>(kShardsAttr);
  if (!shards)
    return shards;
  NamedAttrList all(shards);
  for (auto weight :
       function->getParentOfType<ModuleOp>().getOps<nn::WeightOp>())
    if (auto sharding =
            weight->getAttrOfType<dist::ShardingAttr>(dist::kShardingAttr);
        sharding && weight.isCarried())
      all.set(weight.getOrigin(), sharding);
  return all.getDictionary(function.getContext());
}

void PlanCompilation::readDecision(ModuleOp module) {
  if (!options.train.optimizer.empty() || !options.states.empty())
    for (auto function : module.getOps<func::FuncOp>()) {
      evaluationSchedule = getEvaluationSchedule(function);
      stagesOfNodes = pipeline::getStagesOfNodes(function);
      stagesOfStates = pipeline::findStateStages(function);
      for (auto weight : module.getOps<nn::WeightOp>())
        if (weight->hasAttr(nn::kTrainedAttr))
          trained.insert(weight.getOrigin().str());
      zero = static_cast<int>(getInteger(function, dist::kZeroAttr, 0));
      microBatches = getInteger(function, dist::kMicroBatchesAttr, 1);
      shards = withStates(function);
      const SmallVector<int64_t> devices = getDevices(function);
      devicesOfStages.assign(devices.begin(), devices.end());
      targetsOfDevices.clear();
      if (auto kinds = function->getAttrOfType<ArrayAttr>(kTargetsAttr))
        for (auto target : kinds.getAsValueRange<StringAttr>())
          targetsOfDevices.push_back(target.str());
      axes.clear();
      if (auto known = function->getAttrOfType<ArrayAttr>(dist::kAxesAttr))
        for (auto axis : known.getAsRange<dist::AxisAttr>())
          axes.push_back(axis.getName().str() + "=" +
                         std::to_string(axis.getName() == dist::kStageAxis
                                            ? 1 + *llvm::max_element(devices)
                                            : axis.getSize()));
    }
  if (options.nodes)
    options.nodes->readDecision(module);
  if (!options.emitOnnx.empty())
    annotations = shard::collectAnnotations(module);
}

/// Says if devices want more cores than the machine has for which times are
/// predicted.
void PlanCompilation::remarkCores(const pipeline::PlanSummary &plan) {
  const int64_t devices = llvm::range_size(module->getOps<plan::DeviceOp>());
  if (cores > 0 && devices * plan.step.threads > cores)
    emitRemark(UnknownLoc::get(&context))
        << "the machine has " << abi::countOf(cores, "core") << ", and "
        << abi::countOf(devices, "device") << " of " << plan.step.threads
        << " each want " << devices * plan.step.threads
        << ": times are predicted as if it had them";
}

/// Says if tensors are trained which the model does not call parameters, though
/// it does others.
void PlanCompilation::remarkParameters() {
  bool saysIt = false;
  std::vector<std::string> unknown;
  for (auto weight : module->getOps<nn::WeightOp>()) {
    auto declared = weight->getAttrOfType<StringAttr>(nn::kDeclaredAttr);
    saysIt |= declared && declared.getValue() == nn::kDeclaredParameter;
    if (!declared && weight->hasAttr(nn::kTrainedAttr))
      unknown.push_back(weight.getOrigin().str());
  }
  if (saysIt && !unknown.empty())
    emitRemark(UnknownLoc::get(&context))
        << "these tensors are trained, though the model does not call them "
           "parameters, as it does others: "
        << abi::namesText(unknown)
        << "; torch.onnx.export folds parameters and buffers into such "
           "tensors, unless it is called with optimize=False; --train-only "
           "names what shall be trained";
}

/// Says if devices wait because a step of a training has one micro-batch, as it
/// has if nobody asks for more: that many samples are an update's.
void PlanCompilation::remarkBubble(const pipeline::PlanSummary &plan) {
  constexpr double kMuch = 0.25; // of the devices' time
  const bool mayHaveMore =
      options.learns() || (!options.states.empty() && options.sequences == 1 &&
                           !(*module)->hasAttr(analysis::kMixesAttr));
  if (mayHaveMore && plan.step.micro_batches == 1 && plan.step.bubble > kMuch &&
      plan.step.schedule != "sequential")
    emitRemark(UnknownLoc::get(&context))
        << "a step has one micro-batch, so devices wait "
        << abi::percentText(plan.step.bubble)
        << " of it: with --micro-batches N "
        << (options.learns() ? "(`micro_batches` in the training file) " : "")
        << "they work side by side, and a step has N times as many samples"
        << (options.learns() ? ""
                             : ", each with states of its own; with "
                               "--sequences N clients take steps as they come");
}

LogicalResult PlanCompilation::compileKernels() {
  for (ModuleOp kernels : codegen::getKernelsModules(*module)) {
    auto compiled =
        PARTITA_TRY(codegen::compileKernels(kernels, options.codegen));
    for (codegen::CompiledObject &object : compiled)
      objects.push_back(
          {object.level, std::move(object.bytes), object.architecture});
  }
  return success();
}

} // namespace partita::driver
