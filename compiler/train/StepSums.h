//===- StepSums.h - A loss and gradients of a step --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a step makes of its micro-batches: sums, or means over all samples of
// the step, which are no means of means.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_TRAIN_STEPSUMS_H
#define PARTITA_COMPILER_TRAIN_STEPSUMS_H

#include "dialects/nn/grad/Term.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <string>
#include <utility>
#include <vector>

namespace partita::train {

/// The results of a function that computes a loss and gradients of one
/// micro-batch: `loss.sum`, perhaps `loss.count`, and gradients.
class StepSums {
public:
  /// Ops are made with `b`, at the end of the function.
  StepSums(mlir::func::FuncOp function, mlir::ImplicitLocOpBuilder &b,
           int64_t microBatches)
      : function(function), b(b), microBatches(microBatches) {}

  /// Finds out what the loss is a mean of. Emits an error if the first result
  /// is no loss.
  llvm::LogicalResult findCount();

  /// The names of the results that are gradients, without `.grad`, and their
  /// values.
  std::vector<std::pair<std::string, mlir::Value>> getGradients();

  /// A value of all micro-batches: the sum, divided by the number of samples
  /// that count if the loss is a mean.
  nn::grad::Term ofStep(mlir::Value value);

  /// A gradient of all micro-batches, of the weight `parameter`; null: of an
  /// input. If several nodes read the weight, each has a sum of its own, and
  /// these are added up once a step, in the order of the gradient's terms:
  /// nodes may be on different devices.
  nn::grad::Term ofStep(mlir::Value gradient,
                        mlir::FlatSymbolRefAttr parameter);

  /// Says that the first `count` results are those of a step, and how many
  /// micro-batches one has.
  void markStep(unsigned count);

private:
  llvm::StringRef nameOf(unsigned result);
  nn::grad::Term sumUp(mlir::Value value);
  nn::grad::Term meanOf(nn::grad::Term sum);

  mlir::func::FuncOp function;
  mlir::ImplicitLocOpBuilder &b;
  const int64_t microBatches;
  nn::grad::Term count; ///< of the samples of a step; null: the loss is no mean
};

} // namespace partita::train

#endif // PARTITA_COMPILER_TRAIN_STEPSUMS_H
