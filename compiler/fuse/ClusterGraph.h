//===- ClusterGraph.h - Clusters while they grow ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_FUSE_CLUSTERGRAPH_H
#define PARTITA_COMPILER_FUSE_CLUSTERGRAPH_H

#include "compiler/analysis/Rates.h"
#include "compiler/codegen/Backend.h"
#include "dialects/nn/NNDialect.h"

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <vector>

namespace partita::fuse {

using Ops = llvm::SmallVector<mlir::Operation *>;

/// The ops of a block, and the clusters that were formed so far. Dependences
/// between clusters never form a cycle.
class ClusterGraph {
public:
  explicit ClusterGraph(mlir::Block &block);

  mlir::Block &getBlock() { return block; }
  /// The cluster of an op, or -1.
  int64_t getCluster(mlir::Operation *op) const;
  /// Whether the op may still be put in a cluster.
  bool isFree(mlir::Operation *op) const;
  /// How often the op is computed.
  analysis::Rate getRate(mlir::Operation *op) { return rates.getRate(op); }
  analysis::Rates &getRates() { return rates; }

  /// Sorts the ops by their order in the block.
  void sort(Ops &ops) const;
  /// The values from outside that the ops read, and the values of the ops that
  /// are used outside.
  llvm::SmallVector<mlir::Value> getInputs(const Ops &ops) const;
  llvm::SmallVector<mlir::Value> getResults(const Ops &ops) const;
  /// Whether no path leaves the ops and comes back, and all of them can be on
  /// one device. A path may enter an existing cluster at any of its ops and
  /// leave it at any other.
  bool isConvex(const Ops &ops) const;

  void addCluster(const Ops &ops, nn::ClusterKind kind);
  const std::vector<Ops> &getClusters() const { return clusters; }
  /// Whether a kernel or a library call computes the cluster.
  nn::ClusterKind getKind(int64_t cluster) const { return kinds[cluster]; }

private:
  /// The members of the op's cluster, or the op itself.
  void forEachOf(mlir::Operation *op,
                 llvm::function_ref<void(mlir::Operation *)> visit) const;
  /// The places from `first`, the first place of the ops, on of what the ops
  /// depend on. False if one of the ops is among them.
  bool findProducers(const Ops &ops, unsigned first,
                     llvm::DenseSet<unsigned> &found) const;
  unsigned getFirstPlace(const Ops &ops) const;
  void findStages();
  void findUpdates();

  mlir::Block &block;
  llvm::DenseMap<mlir::Operation *, unsigned> order;
  /// An order in which the clusters and the other ops can be computed. All ops
  /// of a cluster have one place. It is kept as clusters form, so that a walk
  /// to what ops depend on ends where it leaves their neighbourhood.
  llvm::DenseMap<mlir::Operation *, unsigned> places;
  std::vector<mlir::Operation *> byPlace; ///< one op of each; may be null
  llvm::DenseMap<mlir::Operation *, int64_t> clusterOf;
  analysis::Rates rates;
  /// Of the ops whose stage is known before they are fused: a state that they
  /// read is on the device of that stage, and on no other.
  llvm::DenseMap<mlir::Operation *, int64_t> stages;
  /// Of the ops that updates of states are made of: the name of the update, or
  /// "" if there are several, as of the norm of all gradients. Each update is
  /// on the device of its parameter.
  llvm::DenseMap<mlir::Operation *, llvm::StringRef> updates;
  std::vector<Ops> clusters;
  std::vector<nn::ClusterKind> kinds;
};

/// Whether the op costs nothing if it is computed again at each use: a view, a
/// constant or the like.
bool isFreeToRepeat(mlir::Operation *op);

/// Forms clusters of the ops that the library computes, each with the ops that
/// the same call can compute. `onlyNeeded`: only of those that nothing else
/// computes.
void growLibraryClusters(ClusterGraph &graph, const codegen::Backend &backend,
                         bool onlyNeeded);

/// Forms clusters of reductions with the ops that share their rows, then
/// clusters of pointwise ops.
void growLoopClusters(ClusterGraph &graph);

} // namespace partita::fuse

#endif // PARTITA_COMPILER_FUSE_CLUSTERGRAPH_H
