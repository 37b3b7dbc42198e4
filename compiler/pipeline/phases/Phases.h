//===- Phases.h - Which part of a step an op belongs to ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PHASES_PHASES_H
#define PARTITA_COMPILER_PIPELINE_PHASES_PHASES_H

#include "dialects/dist/DistDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace partita::pipeline {

/// The phases of the ops of a model's function, before stages are formed. A
/// cluster has one phase, even if it repeats ops of an earlier one.
///
///   prologue   of the rate of a step
///   forward    of a micro-batch: the loss depends on it, or nothing is trained
///   backward   of a micro-batch: all others, which is where gradients are made
///   update     of the rate of an update
class Phases {
public:
  explicit Phases(mlir::func::FuncOp function);

  /// Whether the function updates states.
  bool isTrained() const { return trained; }
  dist::Phase get(mlir::Operation *op) const { return phases.lookup(op); }
  /// Whether an op of forward makes a gradient, or reads labels for one, that
  /// ops of forward are computed together with.
  bool isEarly(mlir::Operation *op) const { return early.contains(op); }

private:
  void findEarly(llvm::ArrayRef<mlir::Operation *> active);

  llvm::DenseMap<mlir::Operation *, dist::Phase> phases;
  llvm::DenseSet<mlir::Operation *> early;
  bool trained = false;
};

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PHASES_PHASES_H
