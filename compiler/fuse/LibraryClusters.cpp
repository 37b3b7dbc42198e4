//===- LibraryClusters.cpp - Contractions with their epilogues ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/fuse/ClusterGraph.h"

using namespace mlir;

namespace partita::fuse {
namespace {

/// Longest run of ops that only together are a step of the library's: GELU,
/// with a view for each use of its argument.
constexpr unsigned kMostLookahead = 16;

class LibraryCluster {
public:
  LibraryCluster(ClusterGraph &graph, const codegen::Backend &backend,
                 Operation *root)
      : graph(graph), backend(backend), ops{root} {}

  bool isCall(const Ops &candidate) const {
    Ops sorted(candidate);
    graph.sort(sorted);
    SmallVector<Value> results = graph.getResults(sorted);
    return results.size() == 1 &&
           backend.matchCall(sorted, graph.getInputs(sorted), results);
  }

  void grow() {
    bool plain = isCall(ops);
    for (Value operand : ops.front()->getOperands())
      absorbViews(operand, plain);
    while (extend(plain)) {
    }
    if (plain)
      graph.addCluster(ops, nn::ClusterKind::call);
  }

private:
  /// Takes in the views an operand comes from, as far as strides say them.
  void absorbViews(Value operand, bool plain) {
    if (!plain)
      return;
    Ops candidate(ops);
    while (Operation *op = operand.getDefiningOp()) {
      if (!graph.isFree(op) || !op->hasOneUse() ||
          !isa<nn::ViewOpInterface>(op))
        break;
      candidate.push_back(op);
      if (isCall(candidate))
        ops = candidate;
      operand = op->getOperand(0);
    }
  }

  static bool isTensor(Operation *op) {
    auto constant = dyn_cast<nn::ConstantOp>(op);
    return constant && !constant.getValue().isSplat();
  }

  /// What computes an operand of an epilogue and can be said by a view, or is
  /// one number; the library reads other constants in memory. `tables`: those
  /// too, which the call may know.
  void addProducers(Operation *op, Ops &candidate, bool tables = false) const {
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (producer && !llvm::is_contained(candidate, producer) &&
          graph.isFree(producer) && producer->hasOneUse() &&
          isFreeToRepeat(producer) && (tables || !isTensor(producer))) {
        candidate.push_back(producer);
        addProducers(producer, candidate, tables);
      }
    }
  }

  /// The first op in the block, not in the candidate, that uses its values.
  Operation *getNextUser(const Ops &candidate) const {
    Ops users;
    for (Operation *op : candidate)
      for (Operation *user : op->getUsers())
        if (!llvm::is_contained(candidate, user))
          users.push_back(user);
    graph.sort(users);
    return users.empty() ? nullptr : users.front();
  }

  static bool mayFollow(Operation *op) {
    auto view = dyn_cast<nn::ViewOpInterface>(op);
    return isa<nn::PointwiseOpInterface>(op) || (view && view.keepsElements());
  }

  /// Takes in the fewest further ops with which the cluster is a call.
  bool extend(bool &plain) {
    Ops candidate(ops);
    for (unsigned i = 0; i < kMostLookahead; ++i) {
      Operation *next = getNextUser(candidate);
      if (!next || !graph.isFree(next) || !mayFollow(next))
        return false;
      candidate.push_back(next);
      Ops wider(candidate);
      addProducers(next, candidate);
      addProducers(next, wider, /*tables=*/true);
      for (const Ops *list : {&candidate, &wider}) {
        if (list == &wider && wider.size() == candidate.size())
          break; // there is no table
        if (isCall(*list) && graph.isConvex(*list)) {
          ops = *list;
          plain = true;
          return true;
        }
      }
    }
    return false;
  }

  ClusterGraph &graph;
  const codegen::Backend &backend;
  Ops ops;
};

} // namespace

void growLibraryClusters(ClusterGraph &graph, const codegen::Backend &backend,
                         bool onlyNeeded) {
  Ops roots;
  for (Operation &op : graph.getBlock())
    if (graph.isFree(&op) &&
        (onlyNeeded ? backend.needsCall(&op) : backend.isCallRoot(&op)))
      roots.push_back(&op);
  for (Operation *root : roots)
    if (graph.isFree(root))
      LibraryCluster(graph, backend, root).grow();
}

} // namespace partita::fuse
