//===- ClusterGraph.h - What must stay together, and what flows -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_CLUSTERGRAPH_H
#define PARTITA_COMPILER_PIPELINE_CLUSTERGRAPH_H

#include "compiler/pipeline/MachineModel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace partita::pipeline {

/// Ops that no cut may part: those with the same `nn.cluster`, and reshapes
/// (which move no bytes) with what they reshape.
struct ClusterNode {
  llvm::SmallVector<mlir::Operation *> ops; ///< in the function's order
  double ns = 0;                            ///< predicted time
  mlir::Operation *heaviest = nullptr;      ///< of `ops`, by operations
};

/// A value that leaves its cluster, or an input of the model.
struct ClusterValue {
  mlir::Value value;
  int producer = -1;                ///< node; -1: an input
  llvm::SmallVector<int> consumers; ///< nodes, ascending
};

/// The ops of a function that depend on its inputs, by cluster, in a
/// topological order that follows the function's where it can. Ops that depend
/// on weights only are left out: each stage repeats those that it uses.
struct ClusterGraph {
  std::vector<ClusterNode> nodes;
  std::vector<ClusterValue> values;
  llvm::DenseMap<mlir::Operation *, int> nodeOf;
  StepFootprint step;

  /// Times are those of the given micro-batches a step. Fails, with a
  /// diagnostic, if clusters depend on each other in a cycle.
  static mlir::FailureOr<ClusterGraph> build(mlir::func::FuncOp function,
                                             const MachineModel &machine);
};

/// The model's function: the module's only one with a body. Fails with a
/// diagnostic if there is none, or several.
mlir::FailureOr<mlir::func::FuncOp> getModelFunction(mlir::ModuleOp module);

/// Bytes of the weights that a function names, each once.
int64_t getWeightBytes(mlir::func::FuncOp function);

/// Ops of a block that depend on the block's arguments, its terminator left
/// out, in order.
llvm::SmallVector<mlir::Operation *> getActiveOps(mlir::Block &block);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_CLUSTERGRAPH_H
