//===- FormClusters.cpp - Outline clusters --------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/BlockOrder.h"
#include "compiler/analysis/Rates.h"
#include "compiler/analysis/Recomputed.h"
#include "compiler/fuse/ClusterGraph.h"
#include "compiler/fuse/Passes.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/nn/NNDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace partita::fuse {

#define GEN_PASS_DEF_FORMCLUSTERSPASS
#include "compiler/fuse/Passes.h.inc"

namespace {

/// Ops that need no code: parameters are slots already, and a reshape or a sum
/// over micro-batches is another name for one.
bool isAlias(Operation *op) {
  return isa<nn::ParameterOp, nn::WeightOp, nn::SumMicroBatchesOp>(op) ||
         (isa<nn::ReshapeOp>(op) && !op->hasAttr(nn::kClusterAttr));
}

bool isComputation(Operation *op) {
  return isa<nn::NNDialect>(op->getDialect()) && op->getNumResults() != 0 &&
         !isa<nn::ClusterOp>(op) && !isAlias(op);
}

/// Ops that are computed together, and what computes them.
struct FormedCluster {
  SmallVector<Operation *> ops;
  nn::ClusterKind kind = nn::ClusterKind::kernel;
};

/// The ops of a block by cluster; each op without a number is one alone.
/// Constants are left out: they follow their users.
llvm::MapVector<int64_t, FormedCluster> collect(Block &block) {
  llvm::MapVector<int64_t, FormedCluster> numbered;
  int64_t alone = -1;
  for (Operation &op : block) {
    if (!isComputation(&op) || isa<nn::ConstantOp>(op))
      continue;
    auto attr = op.getAttrOfType<nn::ClusterAttr>(nn::kClusterAttr);
    FormedCluster &cluster = numbered[attr ? attr.getNumber() : alone--];
    cluster.ops.push_back(&op);
    if (attr)
      cluster.kind = attr.getKind();
  }
  return numbered;
}

/// Whether fusion put both into one cluster.
bool belongsTo(Operation *constant, Operation *op) {
  Attribute cluster = op->getAttr(nn::kClusterAttr);
  return cluster && constant->getAttr(nn::kClusterAttr) == cluster;
}

using OpSet = llvm::DenseSet<Operation *>;

/// The ops of a block that are known when loading.
OpSet findLoadOps(Block &block) {
  analysis::Rates rates;
  OpSet known;
  for (Operation &op : block)
    if (op.getNumResults() != 0 && rates.isLoad(&op))
      known.insert(&op);
  return known;
}

bool isMovement(Operation *op) {
  auto costed = dyn_cast<nn::CostOpInterface>(op);
  return costed && costed.getCost().kind == nn::CostKind::movement;
}

/// The nodes that a cluster computes, by which people know it; those that only
/// move elements come after the others. An op that is free to repeat, or known
/// when loading, may have been made for another node and be shared by many, so
/// it only counts if there is nothing else.
Location locate(ArrayRef<Operation *> ops, const OpSet &loadOps) {
  SmallVector<Location> computed, moved, all;
  for (Operation *op : ops) {
    all.push_back(op->getLoc());
    if (!isFreeToRepeat(op) && !loadOps.contains(op))
      (isMovement(op) ? moved : computed).push_back(op->getLoc());
  }
  computed.append(moved);
  return FusedLoc::get(ops.front()->getContext(),
                       computed.empty() ? all : computed);
}

void outline(const FormedCluster &formed, const OpSet &loadOps) {
  ArrayRef<Operation *> ops = formed.ops;
  llvm::SetVector<Operation *> inside(ops.begin(), ops.end());
  const bool isCall = formed.kind == nn::ClusterKind::call;
  llvm::SetVector<Value> inputs, results;
  llvm::SetVector<Operation *> constants;
  for (Operation *op : ops) {
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      // What a library reads has to be in memory.
      if (isa_and_nonnull<nn::ConstantOp>(producer) &&
          (!isCall || belongsTo(producer, op)))
        constants.insert(producer);
      else if (!producer || !inside.contains(producer))
        inputs.insert(operand);
    }
    auto yielded = op->getAttrOfType<DenseI64ArrayAttr>(analysis::kYieldedAttr);
    for (OpResult result : op->getResults())
      if ((yielded && llvm::is_contained(yielded.asArrayRef(),
                                         result.getResultNumber())) ||
          llvm::any_of(result.getUsers(),
                       [&](Operation *user) { return !inside.contains(user); }))
        results.insert(result);
  }
  OpBuilder b(ops.back());
  SmallVector<Type> types =
      llvm::map_to_vector(results, [](Value value) { return value.getType(); });
  auto cluster = nn::ClusterOp::create(
      b, locate(ops, loadOps), types, inputs.getArrayRef(), formed.kind,
      /*lowering=*/nn::LoweringAttrInterface());
  // What later phases know of one of its ops holds for the cluster.
  for (Operation *op : ops)
    for (NamedAttribute attr : op->getDiscardableAttrs())
      if (attr.getNameDialect() != op->getDialect())
        cluster->setDiscardableAttr(attr.getName(), attr.getValue());
  Block &body = cluster.getBody().emplaceBlock();
  IRMapping mapping;
  for (Value input : inputs)
    mapping.map(input, body.addArgument(input.getType(), input.getLoc()));
  OpBuilder inner = OpBuilder::atBlockEnd(&body);
  for (Operation *constant : constants)
    inner.clone(*constant, mapping)->removeAttr(nn::kClusterAttr);
  for (Operation *op : ops) {
    Operation *copy = inner.clone(*op, mapping);
    copy->removeAttr(nn::kClusterAttr);
    copy->removeAttr(analysis::kYieldedAttr);
    for (NamedAttribute attr : cluster->getDiscardableAttrs())
      copy->removeDiscardableAttr(attr.getName());
  }
  SmallVector<Value> yielded = llvm::map_to_vector(
      results, [&](Value value) { return mapping.lookup(value); });
  nn::YieldOp::create(inner, cluster.getLoc(), yielded);
  for (auto [from, to] : llvm::zip_equal(results, cluster.getResults()))
    Value(from).replaceAllUsesWith(to);
  for (Operation *op : llvm::reverse(ops))
    op->erase();
}

/// Makes a constant that something other than a cluster wants a value in
/// memory.
void outlineWantedConstants(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (!isa<nn::ConstantOp>(op))
      continue;
    if (op.use_empty())
      op.erase();
    else
      outline({{&op}}, {});
  }
}

/// What adds to a sum over micro-batches is computed early: as soon as there is
/// what it reads. Nothing has to be kept for it any longer then.
void hastenSums(Block &block) {
  auto stage = dyn_cast<dist::StageOp>(block.getParentOp());
  auto sums = stage ? stage->getAttrOfType<DenseI64ArrayAttr>(dist::kSumsAttr)
                    : DenseI64ArrayAttr();
  if (!sums)
    return;
  for (size_t i = 0; i + 1 < sums.asArrayRef().size(); i += 2) {
    Operation *made =
        block.getTerminator()->getOperand(sums[i]).getDefiningOp();
    while (made && isAlias(made) && made->getNumOperands() > 0)
      made = made->getOperand(0).getDefiningOp();
    if (!isa_and_nonnull<nn::ClusterOp>(made))
      continue;
    Operation *last = nullptr;
    for (Value operand : made->getOperands())
      if (Operation *producer = operand.getDefiningOp();
          producer && (!last || last->isBeforeInBlock(producer)))
        last = producer;
    if (last)
      made->moveAfter(last);
  }
}

/// What is written into a state is written late: behind all that reads the old
/// value, so that it may lie where that lies.
void delayUpdates(Block &block) {
  Operation *end = block.getTerminator();
  // Each is moved once: two of one state would pass each other for ever.
  for (nn::ClusterOp cluster : llvm::to_vector(block.getOps<nn::ClusterOp>())) {
    auto updates = cluster.getBody().front().getOps<nn::UpdateSliceOp>();
    if (updates.empty() ||
        llvm::any_of(cluster->getUsers(),
                     [&](Operation *user) { return user != end; }))
      continue;
    auto updated = dyn_cast<BlockArgument>((*updates.begin()).getX());
    auto state = updated ? cluster->getOperand(updated.getArgNumber())
                               .getDefiningOp<nn::ParameterOp>()
                         : nn::ParameterOp();
    if (!state)
      continue;
    Operation *last = cluster;
    SmallVector<Operation *> names = {state};
    while (!names.empty())
      for (Operation *user : names.pop_back_val()->getUsers()) {
        if (isAlias(user))
          names.push_back(user);
        else if (user != end && last->isBeforeInBlock(user))
          last = user;
      }
    if (last != cluster)
      cluster->moveAfter(last);
  }
}

/// What is computed again is computed late: just before its first reader.
void delayRecomputed(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (!op.hasAttr(analysis::kRecomputedAttr) || op.use_empty())
      continue;
    Operation *first = *op.user_begin();
    for (Operation *user : op.getUsers())
      if (user->isBeforeInBlock(first))
        first = user;
    op.moveBefore(first);
  }
}

class FormClustersPass : public impl::FormClustersPassBase<FormClustersPass> {
  void runOnOperation() override {
    SmallVector<Block *> blocks;
    getOperation()->walk([&](Block *block) {
      if (isa<ModuleOp, nn::ClusterOp>(block->getParentOp()))
        return;
      blocks.push_back(block);
    });
    for (Block *block : blocks) {
      const OpSet loadOps = findLoadOps(*block);
      for (const auto &[number, cluster] : collect(*block))
        outline(cluster, loadOps);
      outlineWantedConstants(*block);
      // Clusters stand where their last op stood: some users may stand before.
      analysis::putBehindOperands(*block);
      hastenSums(*block);
      delayUpdates(*block);
      delayRecomputed(*block);
    }
  }
};

} // namespace
} // namespace partita::fuse
