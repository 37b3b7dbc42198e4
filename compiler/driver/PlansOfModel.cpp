//===- PlansOfModel.cpp - Which plans an artifact has ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/PlansOfModel.h"

#include "dialects/plan/PlanDialect.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace partita::driver {

std::vector<CompileOptions> getPlans(const CompileOptions &options) {
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

void followStages(const PlanCompilation &learns, CompileOptions &options) {
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

LogicalResult checkStates(ArrayRef<emit::CompiledPlan> plans) {
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

} // namespace partita::driver
