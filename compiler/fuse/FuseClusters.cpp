//===- FuseClusters.cpp - Decide which ops are computed together -*- C++
//-*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/fuse/ClusterGraph.h"
#include "compiler/fuse/Passes.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/plan/PlanDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace partita::fuse {

#define GEN_PASS_DEF_FUSECLUSTERSPASS
#include "compiler/fuse/Passes.h.inc"

namespace {

/// Gives each use of an op that is free to repeat an op of its own, so that
/// each cluster can have it inside.
void repeatFreeOps(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (!isFreeToRepeat(&op))
      continue;
    Operation *user = nullptr;
    for (OpOperand &use : llvm::make_early_inc_range(op.getUses())) {
      if (!user || use.getOwner() == user) {
        user = use.getOwner();
        continue;
      }
      OpBuilder b(&op);
      use.set(b.clone(op)->getResult(0));
    }
  }
}

/// Merges repeated ops again that no cluster took in.
void mergeRepeatedOps(ClusterGraph &graph) {
  for (Operation &op : llvm::make_early_inc_range(graph.getBlock())) {
    if (op.getNumOperands() != 1 || !isFreeToRepeat(&op) || !graph.isFree(&op))
      continue;
    for (Operation *other :
         llvm::make_early_inc_range(op.getOperand(0).getUsers())) {
      if (other == &op || !graph.isFree(other) ||
          other->getBlock() != op.getBlock() || !op.isBeforeInBlock(other) ||
          !OperationEquivalence::isEquivalentTo(
              &op, other, OperationEquivalence::IgnoreLocations))
        continue;
      other->replaceAllUsesWith(&op);
    }
  }
}

class FuseClusters : public impl::FuseClustersPassBase<FuseClusters> {
  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>())
      for (Block &block : func.getBody())
        fuse(block);
  }

  void fuse(Block &block) {
    repeatFreeOps(block);
    ClusterGraph graph(block);
    growLibraryClusters(graph);
    growLoopClusters(graph);
    mergeRepeatedOps(graph);

    Builder b(&getContext());
    for (auto [number, ops] : llvm::enumerate(graph.getClusters()))
      for (Operation *op : ops)
        op->setAttr(nn::kClusterAttr, b.getI64IntegerAttr(number));
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (op.use_empty() && isa<nn::NNDialect>(op.getDialect()) &&
          isFreeToRepeat(&op))
        op.erase();
    markLoad(graph);
  }

  /// Ops on weights alone run once. Constants stay with those that use them.
  void markLoad(ClusterGraph &graph) {
    for (Operation &op : graph.getBlock()) {
      if (!graph.isWeightsOnly(&op) || isa<nn::ConstantOp>(op))
        continue;
      int64_t cluster = graph.getCluster(&op);
      bool whole = cluster < 0 || llvm::all_of(
                                      graph.getClusters()[cluster],
                                      [&](Operation *other) {
                                        return graph.isWeightsOnly(other);
                                      });
      if (whole && !isa<nn::ParameterOp>(op))
        op.setAttr(nn::kLoadAttr, UnitAttr::get(&getContext()));
    }
  }
};

} // namespace
} // namespace partita::fuse
