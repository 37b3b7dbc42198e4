//===- UnitPhases.h - Which unit of its stage computes an op ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PHASES_UNITPHASES_H
#define PARTITA_COMPILER_PIPELINE_PHASES_UNITPHASES_H

#include "compiler/pipeline/phases/Phases.h"

#include "llvm/ADT/DenseSet.h"

#include <compare>

namespace partita::pipeline {

/// What a schedule wants of the backward of stages.
struct BackwardUnits {
  /// Whether gradients for which other stages wait are units of their own.
  bool areSplit = false;
  /// Whether the last stage has a backward, too. Its gradients wait for nobody,
  /// so they may follow its forward at once.
  bool ofLastStage = false;
};

/// What the schedule of a model's function wants, whose stages are in `order`.
/// Fails, with a diagnostic, if it has none.
mlir::FailureOr<BackwardUnits> getBackwardUnits(mlir::func::FuncOp function,
                                                llvm::ArrayRef<int64_t> order);

/// The phase of the unit that computes each op, once the ops have stages. What
/// comes once a step has its own phase (Phases.h). Of a micro-batch, what a
/// stage computes of values that come back from later stages is its backward,
/// and so is what it computes again (`dist.recomputed`), if it has one.
///
/// Split, a backward has two units. Gradients of weights are what no other
/// stage waits for in that micro-batch; what they share with the others is
/// computed before. The first stage makes nothing for others, so all of its
/// backward are gradients of weights.
class UnitPhases {
public:
  /// `order`: of the stages (StageOrder.h).
  UnitPhases(mlir::func::FuncOp function, llvm::ArrayRef<int64_t> order,
             BackwardUnits backward);

  bool isTrained() const { return phases.isTrained(); }
  dist::Phase get(mlir::Operation *op) const;

private:
  bool isOfMicroBatch(mlir::Operation *op) const;
  void findReturning(llvm::ArrayRef<int64_t> order, bool ofLastStage);
  void findAwaited();

  const Phases phases;
  llvm::SmallVector<mlir::Operation *> active;
  llvm::DenseSet<mlir::Operation *> returning;
  bool areSplit = false;
  llvm::DenseSet<mlir::Operation *> awaited; ///< of those, if they are split
};

/// A unit of a model's function.
struct UnitKey {
  int64_t stage = 0;
  dist::Phase phase = dist::Phase::forward;
  int part = 0; ///< of those that the stage has of a phase

  auto operator<=>(const UnitKey &) const = default;
};

/// The units of prologues and updates. Stages may need what others compute once
/// a step, and these in turn what they compute: the norm of all gradients needs
/// those of each stage, and each stage the norm. So a stage may have several
/// units of such a phase. It has as few as their dependences allow, and each op
/// is in the latest that it can be in, so that little is held between them.
class StepUnits {
public:
  /// `order`: of the stages (StageOrder.h).
  StepUnits(mlir::func::FuncOp function, llvm::ArrayRef<int64_t> order,
            const UnitPhases &phases);

  /// The unit of an op among those of its stage and phase.
  int getPart(mlir::Operation *op) const { return parts.lookup(op); }
  /// In an order in which they can be computed.
  llvm::ArrayRef<UnitKey> getUnits(dist::Phase phase) const {
    return phase == dist::Phase::prologue ? prologues : updates;
  }

private:
  llvm::SmallVector<UnitKey> prologues, updates;
  llvm::DenseMap<mlir::Operation *, int> parts;
};

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PHASES_UNITPHASES_H
