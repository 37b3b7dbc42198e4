//===- IntegerProduct.h - Products of integers ------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library multiplies integers as they are stored. Their zero points a and b
// add terms that need only sums of one operand, one per row or column. The sums
// of weights are computed at load:
//   (x - a)(w - b) = x w - a sum(w) - b sum(x) + depth a b
// where all sums are over the contracted dimensions, which have `depth`
// elements.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_MATH_INTEGERPRODUCT_H
#define PARTITA_COMPILER_IMPORT_MATH_INTEGERPRODUCT_H

#include "compiler/import/graph/NodeImport.h"

namespace partita::import {

/// The product of x and y, summed over dimensions `xDim` and `yDim`, as i32.
/// `multiply` multiplies the stored values; this adds the terms of the zero
/// points. Returns null if x or y does not consist of 8-bit integers, or if a
/// zero point is neither a single number nor a vector with one element per row
/// (x) or column (y). Fails if `multiply` does.
mlir::FailureOr<mlir::Value> dotIntegers(
    NodeImport &n, Biased x, Biased y, int64_t xDim, int64_t yDim,
    llvm::function_ref<mlir::Value(mlir::Value x, mlir::Value y)> multiply);

/// The same for a convolution with the node's attributes. The zero point of the
/// weights must be known to be 0, or 128 for unsigned ones.
mlir::FailureOr<mlir::Value> convolveIntegers(NodeImport &n, Biased x,
                                              Biased weights);

/// The product of the first two inputs, x and y, computed from the integers
/// from which they were dequantised, and then scaled. Returns null if that is
/// not possible. `yColumn` is the dimension of y along which its scales may
/// differ.
mlir::FailureOr<mlir::Value> dotDequantized(
    NodeImport &n, int64_t xDim, int64_t yDim, int64_t yColumn,
    llvm::function_ref<mlir::Value(mlir::Value x, mlir::Value y)> multiply);
mlir::FailureOr<mlir::Value> convolveDequantized(NodeImport &n);

/// The product of x [.., K], of f32, and of weights `y`, a matrix whose
/// dimension `yDim` is summed over, which were dequantised from integers of 2,
/// 4 or 8 bits: they stay integers (nn.packed_dot). Returns null if y is
/// something else, or its scales differ along K in another way than by blocks
/// of a power of two.
mlir::FailureOr<mlir::Value> dotPacked(NodeImport &n, mlir::Value x,
                                       mlir::Value y, int64_t yDim);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_MATH_INTEGERPRODUCT_H
