//===- Reductions.h - Ops that combine many elements into one ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Describes reductions, dots, convolutions and windows in one form. At each
// position of the result, they combine `element(position, reduced)` over all
// positions `reduced` of some further loops.
//
//   nn.dot   sizes = sizes of the contracted dimensions, element = lhs * rhs
//   nn.conv  sizes = [C / groups, window..],
//            element = x * weights, or 0 outside of the image
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_KERNELS_REDUCTIONS_H
#define PARTITA_COMPILER_CODEGEN_KERNELS_REDUCTIONS_H

#include "compiler/codegen/kernels/Evaluate.h"
#include "dialects/nn/NNDialect.h"

#include <functional>
#include <optional>

namespace partita::codegen {

/// An attribute of a reduction (max): its result does not matter if an element
/// is NaN.
inline constexpr llvm::StringLiteral kIgnoreNaNAttr = "ignore_nan";

/// The type in which elements are computed and summed up: f32 for narrower
/// floats, else their own.
mlir::Type getAccumulator(mlir::Type element);

struct Reduction {
  mlir::Operation *op;
  llvm::SmallVector<int64_t> sizes;
  /// nn element type in which elements are combined: f32 for narrower floats.
  mlir::Type accumulator;
  /// The neutral element, of the accumulator's signless type.
  mlir::TypedAttr neutral;
  std::function<mlir::Value(Evaluator &, mlir::OpBuilder &,
                            llvm::ArrayRef<Index>, llvm::ArrayRef<Index>)>
      element;
  std::function<mlir::Value(mlir::OpBuilder &, mlir::Value, mlir::Value)>
      combine;
};

/// Describes `op`, if it is a reduction.
std::optional<Reduction> describeReduction(mlir::Operation *op);

/// Emits loops that compute one element of the reduction at the insertion
/// point.
mlir::Value evaluateReduction(Evaluator &evaluator, mlir::OpBuilder &b,
                              const Reduction &reduction,
                              llvm::ArrayRef<Index> position);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_KERNELS_REDUCTIONS_H
