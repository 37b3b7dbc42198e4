//===- EmitBody.h - The ops of a stage at a point or vector -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_KERNELS_EMITBODY_H
#define PARTITA_COMPILER_CODEGEN_KERNELS_EMITBODY_H

#include "compiler/codegen/kernels/KernelBuffer.h"

#include "mlir/IR/IRMapping.h"

#include <optional>

namespace partita::codegen {

/// How a linear expression changes with a loop.
int64_t getCoefficient(mlir::AffineExpr expr, unsigned loop);

/// How the address of an operand with these strides changes with a loop, in
/// elements.
int64_t getAddressStep(llvm::ArrayRef<int64_t> strides, mlir::AffineMap map,
                       unsigned loop);

/// The point at which a stage is computed, or `width` points along the loop
/// `vectorLoop`.
struct EmitPoint {
  llvm::SmallVector<mlir::Value> positions; ///< in the whole tensor, by loop
  llvm::SmallVector<mlir::Value> inTile;    ///< from the tile's start, by loop
  unsigned vectorLoop = 0;
  int64_t width = 1;
  /// By operand of the stage: elements that are already loaded, or null.
  llvm::SmallVector<mlir::Value> loaded;
  /// Bounds of the vector loop's positions, if `high` is not 0.
  int64_t low = 0, high = 0;
};

/// The positions along the loop at which conditions in the stage's body change,
/// ascending. Nothing if a condition changes at positions that are not
/// constant.
std::optional<llvm::SmallVector<int64_t>> findBreaks(mlir::linalg::GenericOp op,
                                                     unsigned loop);

/// Whether all ops of the stage work on vectors along the loop.
bool isVectorizable(EmitContext &context, const StageSchedule &stage,
                    unsigned loop);

/// Loads the element(s) of an operand of the stage at the point.
mlir::Value emitLoad(mlir::OpBuilder &b, EmitContext &context,
                     mlir::OpOperand &operand, const EmitPoint &point);

/// Computes the stage's element(s) at the point. `accumulated` is the value of
/// the reduction so far; null if the stage does not reduce.
mlir::Value emitBody(mlir::OpBuilder &b, EmitContext &context,
                     const StageSchedule &stage, const EmitPoint &point,
                     mlir::Value accumulated);

/// The address of the element that is read or written through `map`.
mlir::Value emitAddress(mlir::OpBuilder &b, mlir::Location loc,
                        const KernelBuffer &buffer, mlir::AffineMap map,
                        const EmitPoint &point);

/// Stores the stage's element(s) at the point.
void emitStore(mlir::OpBuilder &b, mlir::linalg::GenericOp op,
               const KernelBuffer &target, mlir::Value x,
               const EmitPoint &point);

/// The op of the body that combines the accumulator and one element, if it is
/// just one that vectors can be reduced with; else null.
mlir::Operation *findCombiner(mlir::linalg::GenericOp op);

/// Combines two accumulators, or one with an element.
mlir::Value emitCombined(mlir::OpBuilder &b, mlir::Operation *combiner,
                         mlir::Value all, mlir::Value x);

/// What a reduction starts with.
mlir::Value emitNeutral(mlir::OpBuilder &b, mlir::linalg::GenericOp op);

/// A number as digits, the last of which changes fastest. Each has so many
/// values, and the number's type.
llvm::SmallVector<mlir::Value> emitDigits(mlir::OpBuilder &b,
                                          mlir::Location loc,
                                          mlir::Value number,
                                          llvm::ArrayRef<int64_t> counts);

/// Broadcasts a scalar to a vector. Returns a vector unchanged.
mlir::Value toVector(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                     int64_t width);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_KERNELS_EMITBODY_H
