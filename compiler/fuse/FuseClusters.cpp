//===- FuseClusters.cpp - Decide which ops are computed together ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Recomputed.h"
#include "compiler/codegen/Backend.h"
#include "compiler/fuse/ClusterGraph.h"
#include "compiler/fuse/Passes.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/plan/PlanDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace partita::fuse {

#define GEN_PASS_DEF_FUSECLUSTERSPASS
#include "compiler/fuse/Passes.h.inc"

namespace {

/// The uses of an op's result, the last user first: in an order that the IR
/// says, unlike that of the list of uses.
SmallVector<OpOperand *> getUsesFromTheLast(Operation *op, Block &block) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : op->getUses())
    uses.push_back(&use);
  llvm::stable_sort(uses, [&](OpOperand *a, OpOperand *b) {
    Operation *ofA = block.findAncestorOpInBlock(*a->getOwner()),
              *ofB = block.findAncestorOpInBlock(*b->getOwner());
    return ofA == ofB ? a->getOwner() == b->getOwner() &&
                            a->getOperandNumber() > b->getOperandNumber()
                      : ofB->isBeforeInBlock(ofA);
  });
  return uses;
}

/// Gives each use of an op that is free to repeat an op of its own, so that
/// each cluster can have it inside.
void repeatFreeOps(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (!isFreeToRepeat(&op))
      continue;
    Operation *user = nullptr;
    for (OpOperand *use : getUsesFromTheLast(&op, block)) {
      if (!user || use->getOwner() == user) {
        user = use->getOwner();
        continue;
      }
      OpBuilder b(&op);
      use->set(b.clone(op)->getResult(0));
    }
  }
  // What reads nothing stands before its reader: clusters whose ops are far
  // apart take long to form.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (op.getNumOperands() == 0 && !op.use_empty() && isFreeToRepeat(&op))
      op.moveBefore(block.findAncestorOpInBlock(**op.user_begin()));
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

class FuseClustersPass : public impl::FuseClustersPassBase<FuseClustersPass> {
public:
  using FuseClustersPassBase::FuseClustersPassBase;

private:
  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      const bool isReproducible = func->hasAttr(dist::kReproducibleAttr);
      if ((place == FusePlace::before_cuts && !isReproducible) ||
          (place == FusePlace::behind_cuts && isReproducible))
        continue;
      choosesMethods = winograd && !isReproducible;
      SmallVector<Operation *> others;
      func.walk([&](Operation *op) {
        if (op->hasAttr(codegen::kTargetAttr) && op->getNumRegions() > 0)
          others.push_back(op);
      });
      for (Operation *op : others) {
        op->walk([](Operation *inner) {
          for (StringRef name : {nn::kClusterAttr, nn::kAccumulateAttr,
                                 nn::kWinogradAttr, analysis::kYieldedAttr})
            inner->removeAttr(name);
        });
        decide(op->getRegion(0), codegen::getBackend(op));
      }
      if (others.empty() && place != FusePlace::own_targets)
        decide(func.getBody(), codegen::getBackend(func));
    }
  }

  void decide(Region &region, const codegen::Backend &asked) {
    backend = &asked;
    tuning = asked.getCallTuning();
    for (Block &block : region)
      if (reference)
        keepApart(block);
      else
        fuse(block);
  }

  /// Every op is computed by itself; calls are those that no loops can.
  void keepApart(Block &block) {
    int64_t number = 0;
    for (Operation &op : block)
      if (backend->needsCall(&op))
        op.setAttr(nn::kClusterAttr,
                   nn::ClusterAttr::get(&getContext(), number++,
                                        nn::ClusterKind::call));
  }

  void fuse(Block &block) {
    repeatFreeOps(block);
    ClusterGraph graph(block);
    growLibraryClusters(graph, *backend, /*onlyNeeded=*/!libraryCalls);
    growLoopClusters(graph);
    mergeRepeatedOps(graph);

    for (auto [number, ops] : llvm::enumerate(graph.getClusters()))
      for (Operation *op : ops)
        op->setAttr(
            nn::kClusterAttr,
            nn::ClusterAttr::get(&getContext(), number, graph.getKind(number)));
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (op.use_empty() && isa<nn::NNDialect>(op.getDialect()) &&
          isFreeToRepeat(&op))
        op.erase();
    for (auto [number, cluster] : llvm::enumerate(graph.getClusters())) {
      if (graph.getKind(number) == nn::ClusterKind::kernel)
        continue;
      markAccumulation(graph, cluster);
      if (choosesMethods && tuning)
        tuning->chooseMethod(cluster, graph.getRates());
    }
  }

  /// Where the library is faster so, it adds in the bytes of an operand that
  /// nobody needs later.
  void markAccumulation(ClusterGraph &graph, const Ops &cluster) {
    // A sum over micro-batches is nothing but its accumulator.
    for (Operation *op : cluster)
      if (auto add = dyn_cast<nn::AddOp>(op);
          add && llvm::any_of(add->getOperands(), [](Value operand) {
            return operand.getDefiningOp<nn::AccumulatorOp>();
          })) {
        op->setAttr(nn::kAccumulateAttr, UnitAttr::get(&getContext()));
        return;
      }
    if (!tuning)
      return;
    auto root = llvm::find_if(
        cluster, [&](Operation *op) { return tuning->accumulates(op); });
    if (root == cluster.end())
      return;
    for (Operation *op : cluster) {
      if (!isa<nn::AddOp>(op))
        continue;
      for (Value operand : op->getOperands()) {
        Operation *producer = operand.getDefiningOp();
        if (!producer || llvm::is_contained(cluster, producer) ||
            isa<nn::ReshapeOp>(producer) ||
            graph.getRate(producer) != analysis::Rate::micro_batch ||
            operand.getType() != op->getResult(0).getType())
          continue;
        bool isLast = llvm::all_of(operand.getUsers(), [&](Operation *user) {
          return user == op || (user->getBlock() == op->getBlock() &&
                                user->isBeforeInBlock(*root));
        });
        if (isLast) {
          op->setAttr(nn::kAccumulateAttr, UnitAttr::get(&getContext()));
          return;
        }
      }
    }
  }

  const codegen::Backend *backend = nullptr;
  const codegen::CallTuning *tuning = nullptr; ///< null: none to ask
  bool choosesMethods = true;
};

} // namespace
} // namespace partita::fuse
