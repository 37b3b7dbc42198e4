//===- Rates.h - How often a value is computed ------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every value has a rate: load < step < micro-batch. An op has the largest rate
// of its operands. This analysis is the only place that derives it.
//
//   %x: tensor<8xf32>                                   micro-batch
//   %w = nn.parameter @w : tensor<8xf32>                load
//   %s = nn.parameter state @s : tensor<8xf32>          step
//   %0 = nn.mul %w, %w : tensor<8xf32>                  load
//   %1 = nn.mul %w, %s : tensor<8xf32>                  step
//   %2 = nn.mul %x, %1 : tensor<8xf32>                  micro-batch
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_ANALYSIS_RATES_H
#define PARTITA_COMPILER_ANALYSIS_RATES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace partita::analysis {

/// How often a value changes.
enum class Rate {
  load,       ///< never: computed once, when a model is loaded
  step,       ///< with each step that writes state
  micro_batch ///< with each micro-batch: depends on the model's inputs
};

/// "load", "step" or "micro-batch".
llvm::StringRef stringifyRate(Rate rate);

/// The rates of values.
///
/// The arguments of a function have the rate of a micro-batch. States have the
/// rate of a step. Weights and constants have the rate of loading. Inside an op
/// whose block takes the op's operands (a cluster, a stage), an argument has
/// the rate of its operand. A result of such an op has the rate of the value
/// that the block yields.
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

  bool isLoad(mlir::Value value) { return getRate(value) == Rate::load; }
  bool isLoad(mlir::Operation *op) { return getRate(op) == Rate::load; }

private:
  llvm::DenseMap<mlir::Value, Rate> known;
};

/// Whether the value has the rate of loading in the current IR.
bool isKnownAtLoad(mlir::Value value);

} // namespace partita::analysis

#endif // PARTITA_COMPILER_ANALYSIS_RATES_H
