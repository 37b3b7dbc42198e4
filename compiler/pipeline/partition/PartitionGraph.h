//===- PartitionGraph.h - Clusters and their values -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PARTITION_PARTITIONGRAPH_H
#define PARTITA_COMPILER_PIPELINE_PARTITION_PARTITIONGRAPH_H

#include "compiler/cost/CostModel.h"
#include "compiler/model/ModelFunction.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace partita::pipeline {

/// Ops that no cut may separate: those with the same `nn.cluster`, and reshapes
/// (which move no bytes) with the op whose result they reshape.
struct ClusterNode {
  llvm::SmallVector<mlir::Operation *> ops; ///< in the function's order
  /// The ops that become the cluster: `ops` without those that only rename its
  /// values (reshapes, sums over micro-batches), plus the ops that it computes
  /// at load.
  llvm::SmallVector<mlir::Operation *> work;
  nn::ClusterKind kind = nn::ClusterKind::kernel; ///< what computes them
  ClusterTime time;                               ///< predicted
  /// Of `ops`, by operations; of the loss only if there is nothing else.
  mlir::Operation *heaviest = nullptr;
};

/// A value that leaves its cluster, or an input of the model.
struct ClusterValue {
  mlir::Value value;
  int producer = -1;                ///< node; -1: an input
  llvm::SmallVector<int> consumers; ///< nodes, ascending
};

/// The ops of a function that are computed in every micro-batch, by cluster.
/// They are in a topological order that follows the function's order where
/// possible. Values known at load are left out: each stage computes those that
/// it uses.
struct PartitionGraph {
  mlir::func::FuncOp function;
  std::vector<ClusterNode> nodes;
  std::vector<ClusterValue> values;
  llvm::DenseMap<mlir::Operation *, int> nodeOf;
  StepFootprint step;

  /// Those of a function's block, or of another `block` of it. Fails, with a
  /// diagnostic, if clusters depend on each other in a cycle.
  static mlir::FailureOr<PartitionGraph> build(mlir::func::FuncOp function,
                                               const CostModel &machine,
                                               mlir::Block *block = nullptr);

  /// Writes the predicted times into the IR (`dist.price` on the first op of
  /// each cluster). The plan reads them, so it predicts with the times by which
  /// stages were balanced.
  void writePrices() const;
};

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PARTITION_PARTITIONGRAPH_H
