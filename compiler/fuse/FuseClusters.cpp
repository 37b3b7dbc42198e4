//===- FuseClusters.cpp - Decide which ops are computed together -*- C++
//-*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/onednn/LibraryCall.h"
#include "compiler/fuse/ClusterGraph.h"
#include "compiler/fuse/Passes.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "runtime/abi/LibraryMemory.h"

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
public:
  using FuseClustersPassBase::FuseClustersPassBase;

private:
  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>())
      for (Block &block : func.getBody())
        if (reference)
          keepApart(block);
        else
          fuse(block);
  }

  /// Every op is computed by itself; calls are those that no loops can.
  void keepApart(Block &block) {
    int64_t number = 0;
    for (Operation &op : block)
      if (codegen::needsLibrary(&op))
        op.setAttr(nn::kClusterAttr,
                   nn::ClusterAttr::get(&getContext(), number++,
                                        nn::ClusterKind::call));
  }

  void fuse(Block &block) {
    repeatFreeOps(block);
    ClusterGraph graph(block);
    growLibraryClusters(graph);
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
    for (const Ops &cluster : graph.getClusters()) {
      markAccumulation(graph, cluster);
      if (winograd)
        markWinograd(graph, cluster);
    }
  }

  static bool isLoad(ClusterGraph &graph, Operation *op) {
    return graph.getRate(op) == analysis::Rate::load;
  }

  /// Only a convolution whose weights are known when loading, with nothing but
  /// functions after it.
  void markWinograd(ClusterGraph &graph, const Ops &cluster) {
    nn::ConvOp conv;
    for (Operation *op : cluster) {
      if (auto found = dyn_cast<nn::ConvOp>(op))
        conv = found;
      else if (llvm::any_of(op->getOperands(), [&](Value operand) {
                 Operation *producer = operand.getDefiningOp();
                 return !producer || (!llvm::is_contained(cluster, producer) &&
                                      !isLoad(graph, producer));
               }))
        return;
    }
    if (conv && isForWinograd(graph, conv))
      conv->setAttr(nn::kWinogradAttr, UnitAttr::get(&getContext()));
  }

  /// Whether the elements of a value are made integers: sums of integers are
  /// exact, but not by Winograd's method.
  static bool becomesInteger(Value value) {
    SmallVector<Value> same = {value}; // but for their order
    for (size_t i = 0; i < same.size(); ++i)
      for (Operation *user : same[i].getUsers()) {
        auto view = dyn_cast<nn::ViewOpInterface>(user);
        if (view && view.keepsElements())
          same.push_back(user->getResult(0));
        else if (isa<nn::CastOp>(user) && isa<IntegerType>(getElementTypeOrSelf(
                                              user->getResult(0).getType())))
          return true;
      }
    return false;
  }

  static bool isForWinograd(ClusterGraph &graph, nn::ConvOp conv) {
    auto isOne = [](int64_t value) { return value == 1; };
    auto weights = cast<RankedTensorType>(conv.getWeights().getType());
    RankedTensorType y = conv.getType();
    Operation *producer = conv.getWeights().getDefiningOp();
    if (y.getRank() != 4 || !y.getElementType().isF32() ||
        conv.getGroups() != 1 || weights.getDimSize(2) != 3 ||
        weights.getDimSize(3) != 3 || !llvm::all_of(conv.getStrides(), isOne) ||
        !llvm::all_of(conv.getDilations(), isOne) || !producer ||
        !isLoad(graph, producer) || becomesInteger(conv.getResult()))
      return false;
    int64_t outputs = weights.getDimSize(0);
    bool last = conv.getLayout() == nn::ImageLayout::channels_last;
    return abi::suitsWinograd({y.getDimSize(0), weights.getDimSize(1), outputs,
                               y.getDimSize(last ? 1 : 2),
                               y.getDimSize(last ? 2 : 3)});
  }

  /// A convolution adds upon what its result's bytes held faster than it adds
  /// a tensor from elsewhere. Like the clusters this is decided before the
  /// model is cut, since the library may round the two differently.
  void markAccumulation(ClusterGraph &graph, const Ops &cluster) {
    auto conv = llvm::find_if(
        cluster, [](Operation *op) { return isa<nn::ConvOp>(op); });
    if (conv == cluster.end())
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
                                user->isBeforeInBlock(*conv));
        });
        if (isLast) {
          op->setAttr(nn::kAccumulateAttr, UnitAttr::get(&getContext()));
          return;
        }
      }
    }
  }
};

} // namespace
} // namespace partita::fuse
