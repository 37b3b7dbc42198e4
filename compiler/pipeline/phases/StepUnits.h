//===- StepUnits.h - Units that come once a step ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PHASES_STEPUNITS_H
#define PARTITA_COMPILER_PIPELINE_PHASES_STEPUNITS_H

#include "compiler/pipeline/phases/UnitPhases.h"

#include <compare>

namespace partita::pipeline {

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

#endif // PARTITA_COMPILER_PIPELINE_PHASES_STEPUNITS_H
