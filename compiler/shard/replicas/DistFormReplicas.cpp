//===- DistFormReplicas.cpp - A model as the step of one replica ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/model/ModelFunction.h"
#include "compiler/shard/Passes.h"

using namespace mlir;

namespace partita::shard {

#define GEN_PASS_DEF_DISTFORMREPLICASPASS
#include "compiler/shard/Passes.h.inc"

namespace {

/// The tensor of all replicas together.
Type getWholeType(Type part, int64_t dim, int64_t replicas) {
  auto tensor = cast<RankedTensorType>(part);
  if (dim < 0)
    return part;
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] *= replicas;
  return tensor.clone(shape);
}

int64_t getBatchAxis(IntegerAttr attribute) {
  return attribute ? attribute.getInt() : -1;
}

struct DistFormReplicasPass
    : impl::DistFormReplicasPassBase<DistFormReplicasPass> {
  LogicalResult run(func::FuncOp function) override {
    Block &block = function.getBody().front();
    if (!block.getOps<dist::ReplicateOp>().empty())
      return success();
    const int64_t replicas = dist::getGroupSize(
        function, Builder(&getContext()).getStrArrayAttr(dist::kReplicaAxis));
    if (replicas > 1 ||
        llvm::any_of(block, llvm::IsaPred<dist::PlaceholderOpInterface>))
      wrap(function, replicas);
    return success();
  }

private:
  void wrap(func::FuncOp function, int64_t replicas) {
    Block &block = function.getBody().front();
    Operation *end = block.getTerminator();
    SmallVector<int64_t> argumentDims, resultDims;
    SmallVector<Type> results;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      argumentDims.push_back(getBatchAxis(
          function.getArgAttrOfType<IntegerAttr>(i, nn::kBatchAxisAttr)));
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      resultDims.push_back(getBatchAxis(
          function.getResultAttrOfType<IntegerAttr>(i, nn::kBatchAxisAttr)));
      results.push_back(getWholeType(function.getResultTypes()[i],
                                     resultDims.back(), replicas));
    }
    if (replicas > 1 &&
        llvm::all_of(argumentDims, [](int64_t dim) { return dim < 0; }))
      emitRemark(getOperation().getLoc())
          << "no input has a batch dimension to deal out: all " << replicas
          << " replicas take the same inputs";

    // The step gets arguments of its own, and those of the function grow.
    OpBuilder builder(end);
    auto replicate = dist::ReplicateOp::create(
        builder, function.getLoc(), results, replicas, block.getArguments(),
        argumentDims, resultDims, /*bodiesCount=*/1);
    Block &body = replicate.getBodies().front().emplaceBlock();
    for (BlockArgument argument : block.getArguments()) {
      BlockArgument part =
          body.addArgument(argument.getType(), argument.getLoc());
      argument.replaceUsesWithIf(
          part, [&](OpOperand &use) { return use.getOwner() != replicate; });
      argument.setType(getWholeType(
          argument.getType(), argumentDims[argument.getArgNumber()], replicas));
    }
    body.getOperations().splice(body.begin(), block.getOperations(),
                                block.begin(), Block::iterator(replicate));
    builder.setInsertionPointToEnd(&body);
    dist::YieldOp::create(builder, end->getLoc(), end->getOperands());
    end->setOperands(replicate.getOutputs());
    function.setFunctionType(
        builder.getFunctionType(block.getArgumentTypes(), results));
  }
};

} // namespace
} // namespace partita::shard
