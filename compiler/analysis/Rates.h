//===- Rates.h - How often a value is computed ------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every value has a rate: load < step < micro-batch < update. An op has the
// largest rate of its operands. Only a sum over micro-batches has a larger one.
// This analysis is the only place that derives it.
//
//   %x: tensor<8xf32>                                   micro-batch
//   %w = nn.parameter @w : tensor<8xf32>                load
//   %s = nn.parameter state @s : tensor<8xf32>          step
//   %0 = nn.mul %w, %w : tensor<8xf32>                  load
//   %1 = nn.mul %w, %s : tensor<8xf32>                  step
//   %2 = nn.mul %x, %1 : tensor<8xf32>                  micro-batch
//   %3 = nn.sum_micro_batches %2 : tensor<8xf32>        update
//   %4 = nn.add %s, %3 : tensor<8xf32>                  update
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_ANALYSIS_RATES_H
#define PARTITA_COMPILER_ANALYSIS_RATES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace partita::analysis {

/// How often a value changes.
enum class Rate {
  load,        ///< never: computed once, when a model is loaded
  step,        ///< with each step that writes state, before it begins
  micro_batch, ///< with each micro-batch: depends on the model's inputs
  update       ///< with each step, when its last micro-batch is computed
};

/// "load", "step", "micro-batch" or "update".
llvm::StringRef stringifyRate(Rate rate);

/// The rates of values.
///
/// The arguments of a function have the rate of a micro-batch, or that of a
/// step with `nn.per_step`. States and accumulators have the rate of a step.
/// Weights and constants have the rate of loading. Inside an op whose block
/// takes the op's operands (a cluster, a stage), an argument has the rate of
/// its operand. A result of such an op has the rate of the value that the block
/// yields.
///
/// An object caches its answers. They are valid until an op that it has seen is
/// erased or gets other operands. A rewrite that asks between its changes needs
/// a new object each time (`isKnownAtLoad` makes one).
class Rates {
public:
  Rate getRate(mlir::Value value);
  /// The largest rate of the op's results. If it has no results: the largest
  /// rate of its operands.
  Rate getRate(mlir::Operation *op);

  /// Gives ops of a block that have the rate of a step the rate of an update,
  /// if only such ops read them. Nothing is held for a whole step then that the
  /// update may compute as well.
  void moveIntoUpdates(mlir::Block &block);

  bool isLoad(mlir::Value value) { return getRate(value) == Rate::load; }
  bool isLoad(mlir::Operation *op) { return getRate(op) == Rate::load; }

private:
  llvm::DenseMap<mlir::Value, Rate> known;
};

/// Whether the value has the rate of loading in the current IR.
bool isKnownAtLoad(mlir::Value value);

} // namespace partita::analysis

#endif // PARTITA_COMPILER_ANALYSIS_RATES_H
