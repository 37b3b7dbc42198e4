//===- DistFormStages.cpp - Stages and transfers --------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/Backend.h"
#include "compiler/cost/CostModels.h"
#include "compiler/model/Decision.h"
#include "compiler/model/DeviceMesh.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "compiler/pipeline/partition/StageOrder.h"
#include "compiler/pipeline/phases/StateHomes.h"
#include "compiler/pipeline/phases/UnitPhases.h"
#include "compiler/schedule/Schedule.h"
#include "runtime/abi/Text.h"

#include "dialects/nn/NNDialect.h"
#include "dialects/support/Try.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

#include <map>

using namespace mlir;

namespace partita::pipeline {

#define GEN_PASS_DEF_DISTFORMSTAGESPASS
#include "compiler/pipeline/Passes.h.inc"

namespace {

using dist::Phase;

/// "F0"; the second update of a stage is "U0_2".
std::string nameOf(const UnitKey &key) {
  return schedule::getLetter(static_cast<schedule::Phase>(key.phase)) +
         std::to_string(key.stage) +
         (key.part ? "_" + std::to_string(key.part + 1) : "");
}

class StageFormer {
public:
  StageFormer(func::FuncOp function, ArrayRef<int64_t> order, StringRef target,
              BackwardUnits backward)
      : function(function), target(target), block(function.getBody().front()),
        order(order), devices(getDevices(function)),
        active(getActiveOps(block)), isActive(active.begin(), active.end()),
        builder(block.getTerminator()), phases(function, order, backward),
        stepUnits(function, order, phases) {}

  LogicalResult form() {
    auto module = function->getParentOfType<ModuleOp>();
    SmallVector<int64_t> stages(order);
    if (stages.empty()) // nothing but inputs and weights
      stages.push_back(0);
    int64_t last = *llvm::max_element(stages);
    if (static_cast<int64_t>(devices.size()) <= last)
      return function.emitError("names the devices of ")
             << abi::countOf(devices.size(), "stage") << "; there is a stage "
             << last;
    makeMeshes(module);
    collect(stages);
    for (Phase phase :
         {Phase::prologue, Phase::forward, Phase::backward,
          Phase::input_gradients, Phase::weight_gradients, Phase::update}) {
      for (const UnitKey &key : getUnits(phase, stages))
        if (failed(checkInputs(key)) || (formStage(key), false))
          return failure();
      // Gradients go back, and so does what updates need of the loss.
      if (phase == Phase::forward)
        std::reverse(stages.begin(), stages.end());
    }
    SmallVector<Type> results;
    Operation *terminator = block.getTerminator();
    for (OpOperand &operand : terminator->getOpOperands()) {
      operand.set(made.lookup(operand.get()));
      results.push_back(operand.get().getType());
    }
    function.setFunctionType(FunctionType::get(
        function.getContext(), function.getArgumentTypes(), results));
    SmallVector<Operation *> old;
    for (Operation &op : block.without_terminator())
      if (!isa<dist::StageOp, dist::TransferOp>(op))
        old.push_back(&op);
    for (Operation *op : llvm::reverse(old))
      op->erase();
    return success();
  }

private:
  struct Stage {
    SmallVector<Operation *> ops;
    llvm::SetVector<Value> inputs, outputs;
  };

  /// Those of a phase that have something to compute, in their order.
  SmallVector<UnitKey> getUnits(Phase phase, ArrayRef<int64_t> stages) const {
    if (phase == Phase::prologue || phase == Phase::update)
      return SmallVector<UnitKey>(stepUnits.getUnits(phase));
    SmallVector<UnitKey> units;
    for (int64_t stage : stages)
      if (const UnitKey key{stage, phase}; formed.count(key))
        units.push_back(key);
    return units;
  }

  UnitKey keyOf(Operation *op) const {
    return {getStage(op), phases.get(op), stepUnits.getPart(op)};
  }

  void makeMeshes(ModuleOp module) {
    SymbolTable symbols(module);
    int64_t count = std::max<int64_t>(getInteger(function, kDeviceCountAttr, 0),
                                      1 + *llvm::max_element(devices));
    const DeviceMesh all(function, count);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(function);
    for (int64_t place = 0; place < count; ++place) {
      const StringRef own = getOwnTarget(place);
      const StringRef kind = function->hasAttr(kTargetsAttr)
                                 ? getKind(getTargetAt(function, place))
                                 : target;
      auto mesh = dist::MeshOp::create(
          builder, function.getLoc(), ("d" + Twine(place)).str(),
          all.getDevices(place), all.getAxes(),
          kind.empty() ? StringAttr() : builder.getStringAttr(kind));
      if (!own.empty())
        mesh->setAttr(codegen::kTargetAttr, builder.getStringAttr(own));
      symbols.insert(mesh);
      meshes.push_back(FlatSymbolRefAttr::get(mesh.getSymNameAttr()));
    }
  }

  /// The target of a place, if it is not that of the module; else "".
  StringRef getOwnTarget(int64_t place) {
    const StringRef target = getTargetAt(function, place);
    return target == codegen::getTarget(function) ? "" : target;
  }

  /// CPUs need no name.
  static StringRef getKind(StringRef target) {
    const StringRef kind = codegen::splitTarget(target).first;
    return kind == "cpu" ? "" : kind;
  }

  /// What each stage computes, reads and makes for others.
  void collect(ArrayRef<int64_t> stages) {
    for (int64_t stage : stages)
      formed[{stage, Phase::forward}];
    for (Operation *op : active) {
      Stage &stage = formed[keyOf(op)];
      stage.ops.push_back(op);
      for (Value operand : op->getOperands()) {
        bool comesIn = isa<BlockArgument>(operand);
        if (Operation *producer = operand.getDefiningOp();
            producer && isActive.contains(producer) &&
            keyOf(producer) != keyOf(op)) {
          formed[keyOf(producer)].outputs.insert(operand);
          comesIn = true;
        }
        if (comesIn)
          stage.inputs.insert(operand);
      }
    }
    for (Value value : block.getTerminator()->getOperands()) {
      Operation *producer = value.getDefiningOp();
      if (producer && isActive.contains(producer)) {
        formed[keyOf(producer)].outputs.insert(value);
        continue;
      }
      // An input, or what depends on weights only: any stage can hand it out,
      // but for the new value of a state.
      const int64_t said = producer ? getStage(producer) : -1;
      Stage &stage =
          formed[{llvm::is_contained(stages, said) ? said : stages.back(),
                  Phase::forward}];
      if (!producer)
        stage.inputs.insert(value);
      stage.outputs.insert(value);
    }
  }

  /// Whether what a unit reads is made before it.
  LogicalResult checkInputs(const UnitKey &key) {
    for (Operation *op : formed[key].ops)
      for (Value input : op->getOperands())
        if (Operation *producer = input.getDefiningOp();
            producer && isActive.contains(producer) && keyOf(producer) != key &&
            !made.count(input)) {
          const UnitKey from = keyOf(producer);
          return op->emitError()
                 << "'" << nn::getNodeName(op) << "' of " << nameOf(key)
                 << " reads '" << nn::getNodeName(producer) << "' of "
                 << nameOf(from)
                 << ", which comes later: put both into one stage";
        }
    return success();
  }

  void formStage(const UnitKey &key) {
    const int64_t number = key.stage;
    Stage &stage = formed[key];
    FlatSymbolRefAttr mesh = meshes[devices[number]];
    std::string name = nameOf(key);
    SmallVector<Value> inputs;
    SmallVector<Type> outputs;
    SmallVector<Location> locs;
    for (Value input : stage.inputs)
      inputs.push_back(bring(input, mesh, name));
    for (Value output : stage.outputs) {
      outputs.push_back(dist::PlacedType::get(
          function.getContext(), cast<RankedTensorType>(output.getType()),
          mesh));
      locs.push_back(output.getLoc());
    }
    if (locs.empty())
      locs.push_back(function.getLoc());
    builder.setInsertionPoint(block.getTerminator());
    auto op = dist::StageOp::create(
        builder, builder.getFusedLoc(locs), outputs,
        builder.getStringAttr(name), builder.getI64IntegerAttr(number), mesh,
        getBlocks(number), inputs,
        dist::PhaseAttr::get(builder.getContext(), key.phase));
    if (StringRef own = getOwnTarget(devices[number]); !own.empty())
      op->setAttr(codegen::kTargetAttr, builder.getStringAttr(own));
    Block *body = builder.createBlock(&op.getBody());
    IRMapping mapping;
    for (Value input : stage.inputs)
      mapping.map(input, body->addArgument(input.getType(), input.getLoc()));
    for (Operation *part : stage.ops)
      cloneWithWeights(part, mapping);
    SmallVector<Value> yielded;
    for (Value output : stage.outputs)
      yielded.push_back(getClone(output, mapping));
    dist::YieldOp::create(builder, op.getLoc(), yielded);
    if (SmallVector<int64_t> sums = findSums(stage); !sums.empty())
      op->setAttr(dist::kSumsAttr, builder.getDenseI64ArrayAttr(sums));
    for (auto [value, result] : llvm::zip(stage.outputs, op.getOutputs())) {
      made[value] = result;
      maker[value] = name;
    }
  }

  /// Pairs of a result and the input that is its accumulator.
  SmallVector<int64_t> findSums(const Stage &stage) const {
    SmallVector<int64_t> pairs;
    for (auto [number, output] : llvm::enumerate(stage.outputs))
      for (Operation *user : output.getUsers())
        if (auto sum = dyn_cast<nn::SumMicroBatchesOp>(user);
            sum && sum.getX() == output && sum.getAccumulator()) {
          auto input = llvm::find(stage.inputs, sum.getAccumulator());
          if (input != stage.inputs.end())
            pairs.append({static_cast<int64_t>(number),
                          std::distance(stage.inputs.begin(), input)});
          break;
        }
    return pairs;
  }

  /// The value on the stage's mesh: an input as it is, else what the stage that
  /// makes it yields, transferred to each mesh once.
  Value bring(Value value, FlatSymbolRefAttr mesh, StringRef reader) {
    if (isa<BlockArgument>(value))
      return value;
    Value result = made.lookup(value);
    auto type = cast<dist::PlacedType>(result.getType());
    if (type.getMesh() == mesh)
      return result;
    Value &transferred = transfers[{value.getAsOpaquePointer(), mesh}];
    if (!transferred) {
      std::string reason = maker[value] + " on " +
                           type.getMesh().getValue().str() + " makes it, " +
                           reader.str() + " on " + mesh.getValue().str() +
                           " reads it";
      builder.setInsertionPoint(block.getTerminator());
      transferred = dist::TransferOp::create(
          builder, value.getLoc(),
          dist::PlacedType::get(function.getContext(), type.getTensor(), mesh),
          result, builder.getStringAttr(reason));
    }
    return transferred;
  }

  void cloneWithWeights(Operation *op, IRMapping &mapping) {
    for (Value operand : op->getOperands())
      getClone(operand, mapping);
    Operation *clone = builder.clone(*op, mapping);
    clone->removeAttr(dist::kStageAttr);
    clone->removeAttr(dist::kBlockAttr);
  }

  /// The stage's own copy of a value; of weights-only ops it makes one.
  Value getClone(Value value, IRMapping &mapping) {
    if (!mapping.contains(value))
      cloneWithWeights(value.getDefiningOp(), mapping);
    return mapping.lookup(value);
  }

  ArrayAttr getBlocks(int64_t stage) {
    auto lists = function->getAttrOfType<ArrayAttr>(kStageBlocksAttr);
    if (lists && stage < static_cast<int64_t>(lists.size()))
      return cast<ArrayAttr>(lists[stage]);
    return builder.getArrayAttr({});
  }

  func::FuncOp function;
  StringRef target; // kind of the devices; empty: CPUs
  Block &block;
  ArrayRef<int64_t> order;
  SmallVector<int64_t> devices; // by stage
  SmallVector<Operation *> active;
  llvm::DenseSet<Operation *> isActive;
  OpBuilder builder;
  SmallVector<FlatSymbolRefAttr> meshes; // by place along the axis "stage"
  const UnitPhases phases;
  const StepUnits stepUnits;
  std::map<UnitKey, Stage> formed;
  llvm::DenseMap<Value, Value> made; // placed results
  llvm::DenseMap<Value, std::string> maker;
  llvm::DenseMap<std::pair<void *, Attribute>, Value> transfers;
};

struct DistFormStagesPass : impl::DistFormStagesPassBase<DistFormStagesPass> {
  using DistFormStagesPassBase::DistFormStagesPassBase;

  LogicalResult run(func::FuncOp function) override {
    if (!function->hasAttr(dist::kDevicesAttr))
      return function.emitError(
          "has no stages: run --dist-assign-stages before");
    auto order = PARTITA_TRY(getStageOrder(function));
    BackwardUnits backward = PARTITA_TRY(getBackwardUnits(function, order));
    const bool turns = !order.empty() && !backward.ofLastStage;
    gatherAgain(function, turns ? order.back() : -1);
    PARTITA_TRY(handStatesOn(function));
    repeatSums(function);
    // A stage without work of its own may hand on what its device keeps.
    order = PARTITA_TRY(getStageOrder(function));
    return StageFormer(function, order, target, backward).form();
  }
};

} // namespace
} // namespace partita::pipeline
