//===- LoopClusters.cpp - Ops that share the loops of a kernel ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/fuse/ClusterGraph.h"
#include "dialects/nn/NNDialect.h"

#include "llvm/ADT/TypeSwitch.h"

#include <optional>

using namespace mlir;

namespace partita::fuse {
namespace {

constexpr size_t kMostOps = 64, kMostInputs = 24;

SmallVector<int64_t> getSizes(Value value) {
  auto shape = cast<RankedTensorType>(value.getType()).getShape();
  return llvm::filter_to_vector(shape, [](int64_t size) { return size != 1; });
}

/// The loops of a cluster, without dimensions of size 1: those of a row, and
/// the rows. Pointwise clusters have rows only.
struct Rows {
  SmallVector<int64_t> outer, inner;

  SmallVector<int64_t> getFull() const {
    SmallVector<int64_t> full(outer);
    llvm::append_range(full, inner);
    return full;
  }
  bool isFull(Value value) const { return getSizes(value) == getFull(); }
  bool isRow(Value value) const {
    return !inner.empty() && getSizes(value) == outer;
  }
};

/// The rows of an op that reduces trailing dimensions.
std::optional<Rows> getRows(Operation *op) {
  SmallVector<int64_t> dims;
  if (auto reduce = dyn_cast<nn::ReduceOp>(op))
    dims.assign(reduce.getDims().begin(), reduce.getDims().end());
  else if (auto softmax = dyn_cast<nn::SoftmaxOp>(op))
    dims.push_back(softmax.getDim());
  else
    return std::nullopt;
  auto shape = cast<RankedTensorType>(op->getOperand(0).getType()).getShape();
  Rows rows;
  bool reduced = false;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    bool inner = llvm::is_contained(dims, int64_t(dim));
    if (size == 1)
      continue;
    if (reduced && !inner)
      return std::nullopt;
    reduced |= inner;
    (inner ? rows.inner : rows.outer).push_back(size);
  }
  if (!reduced)
    return std::nullopt;
  return rows;
}

class LoopCluster {
public:
  LoopCluster(ClusterGraph &graph, Operation *seed, Rows rows)
      : graph(graph), rows(std::move(rows)), ops{seed} {}

  void grow() {
    bool changed = true;
    while (changed && ops.size() < kMostOps) {
      changed = false;
      for (Operation *op : getNeighbours())
        if (ops.size() < kMostOps && tryAdd(op))
          changed = true;
    }
    graph.addCluster(ops, nn::ClusterKind::kernel);
  }

private:
  bool contains(Operation *op) const { return llvm::is_contained(ops, op); }

  /// Free producers and users, in the order of the block.
  Ops getNeighbours() const {
    llvm::DenseSet<Operation *> seen(ops.begin(), ops.end());
    Ops neighbours;
    auto consider = [&](Operation *op) {
      if (op && graph.isFree(op) && seen.insert(op).second)
        neighbours.push_back(op);
    };
    for (Operation *op : ops) {
      for (Value operand : op->getOperands())
        consider(operand.getDefiningOp());
      for (Operation *user : op->getUsers())
        consider(user);
    }
    graph.sort(neighbours);
    return neighbours;
  }

  bool isProducer(Operation *op) const {
    return llvm::any_of(op->getUsers(),
                        [&](Operation *user) { return contains(user); });
  }

  bool usesCluster(Operation *op) const {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return operand.getDefiningOp() && contains(operand.getDefiningOp());
    });
  }

  bool tryAdd(Operation *op) {
    if (!fits(op))
      return false;
    Ops added{op};
    // A view or repetition of what is computed here is only a way to its user.
    if (!isProducer(op))
      while (isFreeToRepeat(added.back())) {
        if (!added.back()->hasOneUse())
          return false;
        Operation *user = *added.back()->user_begin();
        if (!graph.isFree(user) || !fits(user))
          return false;
        if (!contains(user))
          added.push_back(user);
        else
          break;
      }
    Ops candidate(ops);
    candidate.append(added);
    // A user's other operands may be repeated from outside on the spot.
    for (Operation *user : added)
      for (Value operand : user->getOperands())
        if (Operation *producer = operand.getDefiningOp())
          if (!llvm::is_contained(candidate, producer) &&
              graph.isFree(producer) && producer->hasOneUse() &&
              isFreeToRepeat(producer) && fitsProducer(producer))
            candidate.push_back(producer);
    if (!graph.isConvex(candidate) ||
        graph.getInputs(candidate).size() > kMostInputs ||
        !hasOnlyWantedResults(candidate))
      return false;
    ops = candidate;
    return true;
  }

  /// Results must share the loops; views and repeated values are not worth
  /// memory of their own.
  bool hasOnlyWantedResults(const Ops &candidate) const {
    for (Value result : graph.getResults(candidate)) {
      Operation *op = result.getDefiningOp();
      if (isFreeToRepeat(op) && op != ops.front())
        return false;
      if (!rows.isFull(result) && !rows.isRow(result))
        return false;
    }
    return true;
  }

  bool fits(Operation *op) const {
    // What is prepared once, or once a step, stays apart from the rest.
    if (graph.getRate(op) != graph.getRate(ops.front()) && !isFreeToRepeat(op))
      return false;
    Value result = op->getResult(0);
    if (isa<nn::PointwiseOpInterface>(op)) {
      bool shape = rows.isFull(result) || rows.isRow(result);
      return shape;
    }
    if (std::optional<Rows> other = getRows(op))
      return other->outer == rows.outer &&
             (rows.inner == other->inner && !rows.inner.empty());
    if (isProducer(op))
      return fitsProducer(op);
    // A user that changes nothing but the shape, on the way to others.
    if (isa<nn::ReshapeOp>(op))
      return (rows.isFull(result) || rows.isRow(result)) &&
             getSizes(op->getOperand(0)) == getSizes(result) &&
             !wantedAsView(op);
    if (auto broadcast = dyn_cast<nn::BroadcastOp>(op))
      return isRowBroadcast(broadcast);
    return false;
  }

  /// A reshape that leaves the cluster is an alias, and needs no code.
  bool wantedAsView(Operation *op) const {
    return llvm::all_of(op->getUsers(), [&](Operation *user) {
      return !graph.isFree(user) ||
             !isa<nn::PointwiseOpInterface, nn::BroadcastOp>(user);
    });
  }

  /// Repeats a value of each row along the row.
  bool isRowBroadcast(nn::BroadcastOp op) const {
    if (!rows.isFull(op.getResult()) || !rows.isRow(op.getX()))
      return false;
    auto from = cast<RankedTensorType>(op.getX().getType()).getShape();
    auto to = cast<RankedTensorType>(op.getType()).getShape();
    // The dimensions it keeps are the leading ones.
    int64_t kept = 0;
    for (auto [size, dim] : llvm::zip_equal(from, op.getDims()))
      if (size != 1) {
        int64_t before = 0;
        for (int64_t i = 0; i < dim; ++i)
          before += to[i] != 1;
        if (before != kept++)
          return false;
      }
    return true;
  }

  /// Ops that only say where elements come from, before the cluster.
  bool fitsProducer(Operation *op) const {
    Value result = op->getResult(0);
    bool shape = rows.isFull(result) || rows.isRow(result);
    return TypeSwitch<Operation *, bool>(op)
        .Case<nn::ConstantOp, nn::IotaOp>([&](Operation *) { return true; })
        .Case([&](nn::BroadcastOp broadcast) {
          Operation *source = broadcast.getX().getDefiningOp();
          // What is computed here and repeated must be a value of a row.
          if (source && contains(source))
            return isRowBroadcast(broadcast);
          return true;
        })
        .Case([&](nn::ReshapeOp) {
          return getSizes(op->getOperand(0)) == getSizes(result) || shape;
        })
        .Case<nn::SliceOp>([&](Operation *) { return shape; })
        .Case<nn::TransposeOp, nn::GatherOp>([&](Operation *) {
          return shape && op->hasOneUse() && rows.inner.empty() &&
                 llvm::none_of(ops, nn::isTranscendental);
        })
        .Default([](Operation *) { return false; });
  }

  ClusterGraph &graph;
  Rows rows;
  Ops ops;
};

} // namespace

void growLoopClusters(ClusterGraph &graph) {
  Ops reductions, pointwise;
  for (Operation &op : graph.getBlock()) {
    if (!graph.isFree(&op))
      continue;
    if (getRows(&op))
      reductions.push_back(&op);
    else if (isa<nn::PointwiseOpInterface>(op))
      pointwise.push_back(&op);
  }
  for (Operation *op : reductions)
    if (graph.isFree(op))
      LoopCluster(graph, op, *getRows(op)).grow();
  for (Operation *op : pointwise)
    if (graph.isFree(op))
      LoopCluster(graph, op, {getSizes(op->getResult(0)), {}}).grow();
}

} // namespace partita::fuse
