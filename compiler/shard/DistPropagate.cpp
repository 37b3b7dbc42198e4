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
    for (BlockArgument argument : block.getArguments())
      propagation.seedWritten(argument);
    for (Operation &op : block.without_terminator())
      for (Value result : op.getResults())
        propagation.seedWritten(result);
    propagation.run();
    for (BlockArgument argument : block.getArguments())
      setCuts(argument, propagation.getCuts(argument));
    for (Operation &op : block.without_terminator())
      if (op.getNumResults() == 1)
        setCuts(op.getResult(0), propagation.getCuts(op.getResult(0)));
    record(*function);
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
