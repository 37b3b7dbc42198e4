//===- IntegerProduct.h - Products of 8-bit integers ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library multiplies integers as they are stored. What their zero points
// add is a sum of one side's numbers for each row or column, which for weights
// is known when loading:
//   (x - a)(w - b) = x w - a sum(w) - b sum(x) + depth a b
// where all sums are over what the product sums over.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_MATH_INTEGERPRODUCT_H
#define PARTITA_COMPILER_IMPORT_MATH_INTEGERPRODUCT_H

#include "compiler/import/graph/NodeImport.h"

namespace partita::import {

/// The sums of products of x and y over dimensions `xDim` and `yDim`, as i32:
/// what `multiply` makes of the values, and what the zero points add to it.
/// Null if these are not integers of 8 bits with zero points that are numbers
/// or have one element a row or column; fails if `multiply` does.
mlir::FailureOr<mlir::Value> dotIntegers(
    NodeImport &n, Biased x, Biased y, int64_t xDim, int64_t yDim,
    llvm::function_ref<mlir::Value(mlir::Value x, mlir::Value y)> multiply);

/// The same of a convolution with the node's attributes; the zero point of the
/// weights must be known to be 0, or 128 for unsigned ones.
mlir::FailureOr<mlir::Value> convolveIntegers(NodeImport &n, Biased x,
                                              Biased weights);

/// What `n.input(x)` and `n.input(y)` were dequantised from, multiplied so, and
/// scaled; null if that is not possible. `yColumn` is the dimension of y that
/// has a column for each scale.
mlir::FailureOr<mlir::Value> dotDequantized(
    NodeImport &n, unsigned x, unsigned y, int64_t xDim, int64_t yDim,
    int64_t yColumn,
    llvm::function_ref<mlir::Value(mlir::Value x, mlir::Value y)> multiply);
mlir::FailureOr<mlir::Value> convolveDequantized(NodeImport &n);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_MATH_INTEGERPRODUCT_H
