//===- ImportPlan.cpp - The model as phases take it -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/ImportPlan.h"

#include "compiler/analysis/Samples.h"
#include "compiler/autodiff/Ports.h"
#include "compiler/codegen/Backend.h"
#include "compiler/driver/CheckOptions.h"
#include "compiler/driver/ReadModule.h"
#include "compiler/model/Decision.h"
#include "compiler/pipeline/Passes.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "dialects/support/Try.h"
#include "runtime/abi/artifact.h"

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
  imports.checkSamples = options.sequences > 1;
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
  module->removeAttr(kDimensionsAttr);
  module->removeAttr(kMaskAttr);
  if (options.dimensions.empty())
    return;
  NamedAttrList sizes;
  for (const DimensionSizes &dimension : options.dimensions)
    sizes.set(dimension.name,
              b.getI64IntegerAttr(options.import.dims.lookup(dimension.name)));
  module->setAttr(kDimensionsAttr, sizes.getDictionary(b.getContext()));
  if (!options.mask.empty())
    module->setAttr(kMaskAttr, b.getStringAttr(options.mask));
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

/// Of how many sequences a step is: states have as many times the entries along
/// dimension 0 that those of the first plan have.
FailureOr<int64_t> countStepSequences(func::FuncOp main,
                                      const CompileOptions &options) {
  int64_t count = 0;
  for (BlockArgument argument : main.getArguments()) {
    auto name = main.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                  nn::kNameAttr);
    auto state = options.stateTypes.find(name ? name.str() : "");
    if (state == options.stateTypes.end())
      continue;
    const RankedTensorType type = nn::getTensorType(argument),
                           first = state->second;
    int64_t times = 1;
    if (options.sequences > 1 && first.getRank() > 0 && first.getDimSize(0) > 0)
      times = type.getDimSize(0) / first.getDimSize(0);
    SmallVector<int64_t> shape(first.getShape());
    if (times > 1)
      shape[0] *= times;
    if (type.getShape() != ArrayRef(shape) || (count && count != times))
      return emitError(main.getLoc())
             << "the state " << name << " would be " << first
             << " for some sizes of --dim, and " << type
             << " for others: plans share the states; only with --sequences N "
                "may dimension 0 of all of them be a multiple, of several "
                "sequences";
    count = times;
  }
  return std::max<int64_t>(count, 1);
}

/// The size of dimension 0 of the inputs.
int64_t countSamples(ModuleOp module) {
  func::FuncOp main = *module.getOps<func::FuncOp>().begin();
  for (BlockArgument argument : main.getArguments())
    if (auto type = nn::getTensorType(argument); type.getRank() > 0)
      return type.getDimSize(0);
  return 0;
}

LogicalResult checkStepSequences(ModuleOp module, int64_t count,
                                 const CompileOptions &options,
                                 const import::ImportOptions &imports) {
  auto fail = [&] {
    return emitError(module.getLoc())
           << "a step cannot be of " << count << " sequences: ";
  };
  if (count > abi::kMostStepSequences)
    return fail() << "the most are " << abi::kMostStepSequences;
  if (options.sequences % count)
    return fail() << "it takes those of a group, and --sequences "
                  << options.sequences << " is no multiple of " << count;
  const int64_t samples = countSamples(module);
  if (std::string why = findMixing(module, imports, {samples / count, samples});
      !why.empty())
    return fail() << why;
  return success();
}

} // namespace

FailureOr<OwningOpRef<ModuleOp>> importPlan(MLIRContext &context,
                                            const CompileOptions &options,
                                            int64_t replicas) {
  const import::ImportOptions imports = getImportOptions(options, replicas);
  auto imported = PARTITA_TRY(readModel(context, imports));
  ModuleOp module = *imported;
  if (!options.states.empty()) {
    PassManager pm(&context, ModuleOp::getOperationName());
    pipeline::CarryStatesPassOptions carried;
    carried.states = llvm::to_vector(options.states);
    carried.stepSequences = PARTITA_TRY(
        countStepSequences(*module.getOps<func::FuncOp>().begin(), options));
    carried.sequences = options.sequences / carried.stepSequences;
    if (carried.stepSequences > 1 &&
        failed(checkStepSequences(module, carried.stepSequences, options,
                                  imports)))
      return failure();
    pm.addPass(pipeline::createCarryStatesPass(carried));
    PARTITA_TRY(pm.run(module));
    if (auto why = module->getAttrOfType<StringAttr>(analysis::kMixesAttr);
        why && carried.stepSequences > 1)
      return emitError(module.getLoc())
             << "a step cannot be of " << carried.stepSequences
             << " sequences: " << why.getValue();
    module->setAttr(codegen::kKeepsNanAttr, UnitAttr::get(&context));
  }
  if (!options.train.optimizer.empty()) {
    PARTITA_TRY(checkScales(module, options));
    noteEntry(module, options);
  }
  // Nobody tells the samples of a step apart.
  if (options.sumsMicroBatches()) {
    module->removeAttr(import::kFixedSamplesAttr);
    module->setAttr(codegen::kKeepsNanAttr, UnitAttr::get(&context));
  } else {
    proveSampleAxes(module, imports);
  }
  PARTITA_TRY(checkMask(module, options));
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
