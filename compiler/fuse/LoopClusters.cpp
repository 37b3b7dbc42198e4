//===- LoopClusters.cpp - Ops that share the loops of a kernel ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/fuse/ClusterGraph.h"
#include "dialects/nn/NNDialect.h"

#include <limits>
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
  auto rowwise = dyn_cast<nn::RowwiseOpInterface>(op);
  if (!rowwise)
    return std::nullopt;
  SmallVector<int64_t> dims = rowwise.getRowDims();
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

/// How a view's elements lie, beside those of its operand.
enum class ViewOrder { same, repeated, permuted };

/// The order of a view's elements, or nothing if the op is no view.
std::optional<ViewOrder> getViewOrder(Operation *op) {
  auto view = dyn_cast<nn::ViewOpInterface>(op);
  if (!view)
    return std::nullopt;
  auto operand = cast<RankedTensorType>(op->getOperand(0).getType());
  std::optional<nn::StridedLayout> layout =
      view.getResultLayout(nn::StridedLayout::dense(operand.getShape()));
  if (!layout)
    return ViewOrder::same;
  auto order = ViewOrder::same;
  int64_t last = std::numeric_limits<int64_t>::max();
  for (auto [size, stride] : llvm::zip_equal(layout->shape, layout->strides)) {
    if (size == 1)
      continue;
    if (stride == 0)
      return ViewOrder::repeated;
    if (stride > last)
      order = ViewOrder::permuted;
    last = stride;
  }
  return order;
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
    const auto results = graph.getResults(candidate);
    // What is prepared once is computed on each device that reads it. If a
    // kernel had two results, a device that reads one of them would have
    // another kernel, which may round otherwise.
    if (graph.getRate(ops.front()) == analysis::Rate::load &&
        results.size() > 1)
      return false;
    for (Value result : results) {
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
      return shape && !joinsUpdates(op);
    }
    if (std::optional<Rows> other = getRows(op))
      return other->outer == rows.outer &&
             (rows.inner == other->inner && !rows.inner.empty());
    if (isProducer(op))
      return fitsProducer(op);
    switch (getViewOrder(op).value_or(ViewOrder::permuted)) {
    case ViewOrder::same:
      // A user that changes nothing but the shape, on the way to others.
      return (rows.isFull(result) || rows.isRow(result)) &&
             getSizes(op->getOperand(0)) == getSizes(result) &&
             !wantedAsView(op);
    case ViewOrder::repeated:
      return isRowBroadcast(op);
    case ViewOrder::permuted:
      return false;
    }
    return false;
  }

  /// Whether an op makes something of a number of this cluster, such as the
  /// norm of a gradient, and of others. In updates these belong to other
  /// parameters, which may be elsewhere.
  bool joinsUpdates(Operation *op) const {
    return graph.getRate(op) == analysis::Rate::update &&
           rows.isRow(op->getResult(0)) && !rows.isFull(op->getResult(0)) &&
           llvm::any_of(op->getOperands(), [&](Value operand) {
             Operation *producer = operand.getDefiningOp();
             return producer && !contains(producer) &&
                    !isFreeToRepeat(producer);
           });
  }

  /// A view that leaves the cluster is an alias, and needs no code.
  bool wantedAsView(Operation *op) const {
    return llvm::all_of(op->getUsers(), [&](Operation *user) {
      return !graph.isFree(user) ||
             !(isa<nn::PointwiseOpInterface>(user) ||
               getViewOrder(user) == ViewOrder::repeated);
    });
  }

  /// Whether the view repeats a value of each row along the row.
  bool isRowBroadcast(Operation *view) const {
    if (!rows.isFull(view->getResult(0)) || !rows.isRow(view->getOperand(0)))
      return false;
    // The dimensions it keeps are the leading ones.
    auto operand = cast<RankedTensorType>(view->getOperand(0).getType());
    std::optional<nn::StridedLayout> layout =
        cast<nn::ViewOpInterface>(view).getResultLayout(
            nn::StridedLayout::dense(operand.getShape()));
    size_t dim = 0;
    for (auto [size, stride] : llvm::zip_equal(layout->shape, layout->strides))
      if (size != 1 && (stride == 0) != (dim++ >= rows.outer.size()))
        return false;
    return true;
  }

  /// Ops that only say where elements come from, before the cluster.
  bool fitsProducer(Operation *op) const {
    Value result = op->getResult(0);
    const bool shape = rows.isFull(result) || rows.isRow(result);
    if (op->getNumOperands() == 0)
      return true;
    std::optional<ViewOrder> order = getViewOrder(op);
    if (order == ViewOrder::same)
      return shape || getSizes(op->getOperand(0)) == getSizes(result);
    if (order == ViewOrder::repeated) {
      // What is computed here and repeated must be a value of a row.
      Operation *source = op->getOperand(0).getDefiningOp();
      return !source || !contains(source) || isRowBroadcast(op);
    }
    auto indexed = dyn_cast<nn::IndexedOpInterface>(op);
    return (order == ViewOrder::permuted ||
            (indexed && indexed.readsComputedPlace())) &&
           shape && op->hasOneUse() && rows.inner.empty() &&
           llvm::none_of(ops, nn::isTranscendental);
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
