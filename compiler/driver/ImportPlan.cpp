//===- ImportPlan.cpp - The model as phases take it -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/ImportPlan.h"

#include "compiler/autodiff/Ports.h"
#include "compiler/codegen/Backend.h"
#include "compiler/codegen/NotANumber.h"
#include "compiler/driver/CheckOptions.h"
#include "compiler/driver/ReadModel.h"
#include "compiler/driver/SampleProof.h"
#include "compiler/model/Decision.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/plan/PlanSizes.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/plan/PlanDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace partita::driver {
namespace {

import::ImportOptions getImportOptions(const CompileOptions &options,
                                       int64_t replicas) {
  import::ImportOptions imports = options.import;
  imports.recordTensors = !options.expose.nodes.empty();
  imports.recordOps = options.nodes != nullptr;
  imports.keepWeights = !options.autodiff.loss.empty() || options.parameters;
  imports.replicas = replicas;
  if (!options.train.optimizer.empty())
    imports.training = {options.autodiff.results ==
                                autodiff::LossResults::evaluation
                            ? import::TrainingMode::evaluate
                            : import::TrainingMode::learn,
                        options.train.microBatches, options.train.evalMode};
  imports.numberNodes = !options.emitOnnx.empty();
  imports.annotationsOverride = getAnnotationsOverride(options.partition);
  return imports;
}

/// What the plan is for, where a model is trained.
void noteEntry(ModuleOp module, const CompileOptions &options) {
  Builder b(module.getContext());
  const bool learns = options.autodiff.results == autodiff::LossResults::parts;
  module->setAttr(plan::kEntryAttr, b.getStringAttr(learns ? "train" : "eval"));
  if (!options.train.description.empty())
    module->setAttr(plan::kTrainingAttr,
                    b.getStringAttr(options.train.description));
}

/// For which sizes the plan is. A module that was printed may say it of
/// another.
void noteSizes(ModuleOp module, const CompileOptions &options) {
  Builder b(module.getContext());
  module->removeAttr(pipeline::kDimensionsAttr);
  module->removeAttr(pipeline::kMaskAttr);
  if (options.dimensions.empty())
    return;
  NamedAttrList sizes;
  for (const DimensionSizes &dimension : options.dimensions)
    sizes.set(dimension.name,
              b.getI64IntegerAttr(options.import.dims.lookup(dimension.name)));
  module->setAttr(pipeline::kDimensionsAttr,
                  sizes.getDictionary(b.getContext()));
  if (!options.mask.empty())
    module->setAttr(pipeline::kMaskAttr, b.getStringAttr(options.mask));
}

/// Parameters, stages and shardings as another plan has them.
void noteStages(ModuleOp module, const CompileOptions &options) {
  if (options.trained)
    for (auto weight : module.getOps<nn::WeightOp>())
      if (!options.trained->contains(weight.getOrigin().str()))
        weight->setAttr(autodiff::kUntrainedAttr,
                        StringAttr::get(module.getContext(),
                                        "another plan does not train it"));
  if (options.shards)
    for (auto function : module.getOps<func::FuncOp>())
      function->setAttr(kShardsAttr, options.shards);
  if (options.stagesOfNodes.empty())
    return;
  Builder b(module.getContext());
  auto toAttr = [&](const std::map<std::string, int64_t> &stages) {
    NamedAttrList list;
    for (const auto &[name, stage] : stages)
      list.set(name, b.getI64IntegerAttr(stage));
    return list.getDictionary(b.getContext());
  };
  for (auto function : module.getOps<func::FuncOp>()) {
    function->setAttr(dist::kAnnotatedStagesAttr,
                      toAttr(options.stagesOfNodes));
    function->setAttr(kStateStagesAttr, toAttr(options.stagesOfStates));
    function->setAttr(dist::kDevicesAttr,
                      b.getDenseI64ArrayAttr(options.devicesOfStages));
  }
}

} // namespace

FailureOr<OwningOpRef<ModuleOp>> importPlan(MLIRContext &context,
                                            const CompileOptions &options,
                                            int64_t replicas) {
  const import::ImportOptions imports = getImportOptions(options, replicas);
  auto imported = readModel(context, imports);
  if (failed(imported))
    return failure();
  ModuleOp module = **imported;
  if (!options.states.empty()) {
    PassManager pm(&context, ModuleOp::getOperationName());
    pipeline::CarryStatesPassOptions carried;
    carried.states = llvm::to_vector(options.states);
    carried.sequences = options.sequences;
    pm.addPass(pipeline::createCarryStatesPass(carried));
    if (failed(pm.run(module)))
      return failure();
    module->setAttr(codegen::kKeepsNanAttr, UnitAttr::get(&context));
  }
  if (!options.train.optimizer.empty()) {
    if (failed(checkScales(module, options)))
      return failure();
    noteEntry(module, options);
  }
  // Nobody tells the samples of a step apart.
  if (options.sumsMicroBatches()) {
    module->removeAttr(import::kFixedSamplesAttr);
    module->setAttr(codegen::kKeepsNanAttr, UnitAttr::get(&context));
  } else {
    proveSampleAxes(module, imports);
  }
  if (failed(checkMask(module, options)))
    return failure();
  if (!options.target.empty())
    module->setAttr(codegen::kTargetAttr,
                    StringAttr::get(&context, options.target));
  if (!options.partition.machine.empty())
    module->setAttr(kMachineAttr,
                    StringAttr::get(&context, options.partition.machine));
  if (options.partition.threads > 0)
    module->setAttr(kThreadsAttr, Builder(&context).getI64IntegerAttr(
                                      options.partition.threads));
  noteSizes(module, options);
  noteStages(module, options);
  return imported;
}

} // namespace partita::driver
