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

/// The ops of a block, and the clusters they were put in so far. Clusters never
/// form a cycle among each other.
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

  /// In the order of the block.
  void sort(Ops &ops) const;
  /// Values from outside the ops, and values that are wanted outside.
  llvm::SmallVector<mlir::Value> getInputs(const Ops &ops) const;
  llvm::SmallVector<mlir::Value> getResults(const Ops &ops) const;
  /// Whether no path leaves the ops and comes back, with all clusters so far
  /// computed whole.
  bool isConvex(const Ops &ops) const;

  void addCluster(const Ops &ops, nn::ClusterKind kind);
  const std::vector<Ops> &getClusters() const { return clusters; }
  /// What computes the cluster.
  nn::ClusterKind getKind(int64_t cluster) const { return kinds[cluster]; }

private:
  mlir::Block &block;
  llvm::DenseMap<mlir::Operation *, unsigned> order;
  llvm::DenseMap<mlir::Operation *, int64_t> clusterOf;
  analysis::Rates rates;
  std::vector<Ops> clusters;
  std::vector<nn::ClusterKind> kinds;
};

/// Views, constants and the like: computing them again where they are used
/// costs nothing.
bool isFreeToRepeat(mlir::Operation *op);

/// What a library computes, with what it can do in the same call.
void growLibraryClusters(ClusterGraph &graph, const codegen::Backend &backend);

/// Reductions with what shares their rows, then pointwise ops.
void growLoopClusters(ClusterGraph &graph);

} // namespace partita::fuse

#endif // PARTITA_COMPILER_FUSE_CLUSTERGRAPH_H
