//===- FormClusters.cpp - Outline clusters -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/LibraryCall.h"
#include "compiler/fuse/Passes.h"
#include "dialects/nn/NNDialect.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace partita::fuse {

#define GEN_PASS_DEF_FORMCLUSTERSPASS
#include "compiler/fuse/Passes.h.inc"

namespace {

/// Ops that need no code: parameters are slots already, and a reshape is
/// another name for one.
bool isAlias(Operation *op) {
  return isa<nn::ParameterOp, nn::WeightOp>(op) ||
         (isa<nn::ReshapeOp>(op) && !op->hasAttr(nn::kClusterAttr));
}

bool isComputation(Operation *op) {
  return isa<nn::NNDialect>(op->getDialect()) && op->getNumResults() != 0 &&
         !isa<nn::ClusterOp>(op) && !isAlias(op);
}

/// The ops of a block by cluster; each op without a number is one alone.
/// Constants are left out: they follow their users.
SmallVector<SmallVector<Operation *>> collect(Block &block) {
  llvm::MapVector<int64_t, SmallVector<Operation *>> numbered;
  int64_t alone = -1;
  for (Operation &op : block) {
    if (!isComputation(&op) || isa<nn::ConstantOp>(op))
      continue;
    auto number = op.getAttrOfType<IntegerAttr>(nn::kClusterAttr);
    numbered[number ? number.getInt() : alone--].push_back(&op);
  }
  SmallVector<SmallVector<Operation *>> clusters;
  for (auto &[number, ops] : numbered)
    clusters.push_back(ops);
  return clusters;
}

/// Whether fusion put both into one cluster.
bool belongsTo(Operation *constant, Operation *op) {
  Attribute number = op->getAttr(nn::kClusterAttr);
  return number && constant->getAttr(nn::kClusterAttr) == number;
}

/// Whether a library computes the ops, if it has constants that no op of the
/// cluster took with it, as its weights are, in memory.
bool isLibraryCall(ArrayRef<Operation *> ops) {
  if (llvm::none_of(ops, codegen::isCallRoot))
    return false;
  SmallVector<Operation *> all;
  llvm::SetVector<Value> inputs, results;
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp();
          isa_and_nonnull<nn::ConstantOp>(producer) &&
          belongsTo(producer, op) && !llvm::is_contained(all, producer))
        all.push_back(producer);
  llvm::append_range(all, ops);
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      if (!llvm::is_contained(all, operand.getDefiningOp()))
        inputs.insert(operand);
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) {
            return !llvm::is_contained(all, user);
          }))
        results.insert(result);
  }
  return codegen::matchLibraryCall(all, inputs.getArrayRef(),
                                   results.getArrayRef()) != nullptr;
}

void outline(ArrayRef<Operation *> ops) {
  llvm::SetVector<Operation *> inside(ops.begin(), ops.end());
  const bool isCall = isLibraryCall(ops);
  llvm::SetVector<Value> inputs, results;
  llvm::SetVector<Operation *> constants;
  bool load = true;
  SmallVector<Location> locations;
  for (Operation *op : ops) {
    load &= op->hasAttr(nn::kLoadAttr);
    locations.push_back(op->getLoc());
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      // What a library reads has to be in memory.
      if (isa_and_nonnull<nn::ConstantOp>(producer) &&
          (!isCall || belongsTo(producer, op)))
        constants.insert(producer);
      else if (!producer || !inside.contains(producer))
        inputs.insert(operand);
    }
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(),
                       [&](Operation *user) { return !inside.contains(user); }))
        results.insert(result);
  }
  OpBuilder b(ops.back());
  SmallVector<Type> types =
      llvm::map_to_vector(results, [](Value value) { return value.getType(); });
  auto cluster =
      nn::ClusterOp::create(b, FusedLoc::get(b.getContext(), locations), types,
                            inputs.getArrayRef(), /*lowering=*/Attribute());
  if (load)
    cluster->setAttr(nn::kLoadAttr, b.getUnitAttr());
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
    copy->removeAttr(nn::kLoadAttr);
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
      outline({&op});
  }
}

class FormClusters : public impl::FormClustersPassBase<FormClusters> {
  void runOnOperation() override {
    SmallVector<Block *> blocks;
    getOperation()->walk([&](Block *block) {
      if (isa<ModuleOp, nn::ClusterOp>(block->getParentOp()))
        return;
      blocks.push_back(block);
    });
    for (Block *block : blocks) {
      for (ArrayRef<Operation *> ops : collect(*block))
        outline(ops);
      outlineWantedConstants(*block);
      // Clusters stand where their last op stood: some users may stand before.
      sortTopologically(block);
    }
  }
};

} // namespace
} // namespace partita::fuse
