//===- EmitBody.h - The ops of a stage at a point or vector -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CPU_KERNELS_EMITBODY_H
#define PARTITA_COMPILER_CODEGEN_CPU_KERNELS_EMITBODY_H

#include "compiler/codegen/cpu/kernels/EmitLoops.h"

#include "mlir/IR/IRMapping.h"

#include <optional>

namespace partita::codegen {

/// How a linear expression changes with a loop.
int64_t getCoefficient(mlir::AffineExpr expr, unsigned loop);

/// How an operand's address changes with a loop, in elements.
int64_t getAddressStep(const Buffer &buffer, mlir::AffineMap map,
                       unsigned loop);

/// Where a stage is being computed: at one point, or at `width` points along
/// the loop `vectorLoop`.
struct EmitPoint {
  llvm::SmallVector<mlir::Value> positions; ///< in the whole tensor, by loop
  llvm::SmallVector<mlir::Value> inTile;    ///< from the tile's start, by loop
  unsigned vectorLoop = 0;
  int64_t width = 1;
  /// By operand of the stage: elements that were loaded before, or null.
  llvm::SmallVector<mlir::Value> loaded;
  /// Positions of the vector loop lie between these, if `high` is not 0.
  int64_t low = 0, high = 0;
};

/// Where conditions in the stage's body change along the loop, in order; none
/// if one changes otherwise than at fixed positions.
std::optional<llvm::SmallVector<int64_t>> findBreaks(mlir::linalg::GenericOp op,
                                                     unsigned loop);

/// Whether all ops of the stage work on vectors along the loop.
bool isVectorizable(EmitContext &context, const StageSchedule &stage,
                    unsigned loop);

/// Loads what an operand of the stage has at the point.
mlir::Value emitLoad(mlir::OpBuilder &b, EmitContext &context,
                     mlir::OpOperand &operand, const EmitPoint &point);

/// Computes the stage's element(s), given what is accumulated so far (null
/// where the stage does not reduce).
mlir::Value emitBody(mlir::OpBuilder &b, EmitContext &context,
                     const StageSchedule &stage, const EmitPoint &point,
                     mlir::Value accumulated);

/// Address of the element of a tensor read or written through `map`.
mlir::Value emitAddress(mlir::OpBuilder &b, mlir::Location loc,
                        const Buffer &buffer, mlir::AffineMap map,
                        const EmitPoint &point);

/// Repeats a scalar; a vector stays as it is.
mlir::Value toVector(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                     int64_t width);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_CPU_KERNELS_EMITBODY_H
