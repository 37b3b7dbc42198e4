//===- DistPropagate.cpp - Shardings of all tensors -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/Decision.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "compiler/shard/CollectAnnotations.h"
#include "compiler/shard/NodeTensors.h"
#include "compiler/shard/Passes.h"
#include "compiler/shard/Propagation.h"

namespace partita::shard {
#define GEN_PASS_DEF_DISTPROPAGATEPASS
#include "compiler/shard/Passes.h.inc"
} // namespace partita::shard

using namespace mlir;

namespace partita::shard {
namespace {

struct DistPropagatePass : impl::DistPropagatePassBase<DistPropagatePass> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> function =
        pipeline::getModelFunction(getOperation());
    if (failed(function))
      return signalPassFailure();
    Block &block = function->getBody().front();
    Propagation propagation(*function);
    if (propagation.getAxes().empty())
      return;
    Seeds seeds;
    auto add = [&](Value value) {
      if (getSharding(value))
        seeds.push_back({value, getCuts(value)});
    };
    for (BlockArgument argument : block.getArguments())
      add(argument);
    SmallVector<Operation *> ops;
    for (Operation &op : block.without_terminator()) {
      ops.push_back(&op);
      for (Value result : op.getResults())
        add(result);
    }
    roundUp(propagation, ops, seeds);
    spread(propagation, seeds);
    remarkPadding(propagation, ops);
    for (BlockArgument argument : block.getArguments())
      setCuts(argument, propagation.getCuts(argument));
    for (Operation &op : block.without_terminator())
      if (op.getNumResults() == 1)
        setCuts(op.getResult(0), propagation.getCuts(op.getResult(0)));
    record(*function);
  }

  using Seeds = SmallVector<std::pair<Value, Cuts>>;

  static void spread(Propagation &propagation, const Seeds &seeds) {
    for (auto &[value, cuts] : seeds)
      propagation.fix(value, cuts);
    propagation.run();
  }

  /// Heads and the like that do not divide: rounds up the parts of what
  /// is split into them.
  static void roundUp(Propagation &propagation, ArrayRef<Operation *> ops,
                      Seeds &seeds) {
    auto tryOut = [&] {
      spread(propagation, seeds);
      SmallVector<NeededUnit> needed = propagation.getNeededUnits(ops);
      propagation.undo();
      return needed;
    };
    SmallVector<NeededUnit> needed = tryOut();
    for (auto &[value, cuts] : seeds) {
      if (needed.empty())
        return;
      const Cuts before = cuts;
      cuts = propagation.withUnits(value, cuts, needed);
      if (cuts == before)
        continue;
      if (auto left = tryOut(); left.size() < needed.size())
        needed = left;
      else
        cuts = before;
    }
  }

  /// One remark for all that is padded in the same way.
  static void remarkPadding(const Propagation &propagation,
                            ArrayRef<Operation *> ops) {
    const Axes &axes = propagation.getAxes();
    SmallVector<std::pair<int64_t, DimCut>> known;
    for (Operation *op : ops) {
      const nn::ShardingRule *rule = propagation.getRule(op);
      if (!rule)
        continue;
      const FactorCuts factors = propagation.getFactorCuts(op);
      for (const nn::DimFactors &dims : rule->operands)
        for (ArrayRef<int64_t> list : dims)
          for (int64_t factor : list) {
            const int64_t size = rule->factors[factor].size;
            const DimCut &cut = factors[factor];
            if (list.size() < 2 || cut.isWhole() || isEven(size, cut, axes) ||
                llvm::is_contained(known, std::pair(size, cut)))
              continue;
            known.push_back({size, cut});
            const int64_t devices = axes.getSize(cut.axes);
            emitRemark(op->getLoc(), "'")
                << nn::getNodeName(op) << "' splits a dimension into " << size
                << " parts, which " << devices
                << " devices do not divide: it is computed as if there were "
                << getPartSize(size, cut, axes) * devices;
          }
    }
  }

  /// For a partition file: how the model's own tensors are cut.
  void record(func::FuncOp function) {
    NamedAttrList shards;
    SymbolTable symbols(getOperation());
    for (BlockArgument argument : function.getArguments())
      if (auto name = function.getArgAttrOfType<StringAttr>(
              argument.getArgNumber(), nn::kNameAttr))
        if (dist::ShardingAttr sharding = getSharding(argument))
          shards.set(name.getValue(), sharding);
    for (auto parameter : function.getOps<nn::ParameterOp>())
      if (auto weight = symbols.lookup<nn::WeightOp>(parameter.getWeight()))
        if (dist::ShardingAttr sharding = getSharding(parameter))
          shards.set(weight.getOrigin(), sharding);
    function->setAttr(pipeline::kShardsAttr,
                      shards.getDictionary(&getContext()));
    recordResults(function);
  }

  /// For annotations: how the results of the model's nodes are cut.
  void recordResults(func::FuncOp function) {
    auto numbered = dist::Annotations::fromAttr(
        getOperation()->getAttr(dist::kNumberedNodesAttr));
    if (!numbered)
      return;
    NamedAttrList shards;
    const NodeTensors results(function);
    for (const dist::NodeAnnotation &node : numbered->nodes)
      for (const dist::TensorAnnotation &tensor : node.tensors)
        if (tensor.kind == dist::TensorKind::result &&
            tensor.where == node.node)
          if (Value value = results.find(node.node, tensor.shape))
            shards.set(getResultKey(node.node, tensor.name),
                       getAttr(&getContext(), getCuts(value),
                               static_cast<int64_t>(tensor.shape.size())));
    function->setAttr(kResultShardsAttr, shards.getDictionary(&getContext()));
  }
};

} // namespace
} // namespace partita::shard
