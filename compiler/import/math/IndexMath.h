//===- IndexMath.h - Positions, and arithmetic on them ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_MATH_INDEXMATH_H
#define PARTITA_COMPILER_IMPORT_MATH_INDEXMATH_H

#include "compiler/import/graph/NodeImport.h"

namespace partita::import {

/// A tensor of i64 in which each element is its index along `dim`.
mlir::Value makeIota(NodeImport &n, llvm::ArrayRef<int64_t> shape, int64_t dim);

/// x clamped to [low, high].
mlir::Value clampTo(NodeImport &n, mlir::Value x, double low, double high);

/// The index as i64. A negative index counts from the end of `size`.
mlir::Value wrapIndex(NodeImport &n, mlir::Value index, int64_t size);

/// Whether low <= x < high.
mlir::Value isWithin(NodeImport &n, mlir::Value x, double low, double high);

/// The permutation that moves a dimension to the end, and the one back.
Shape toLast(int64_t rank, int64_t dim);
Shape fromLast(int64_t rank, int64_t dim);

/// Converts to a type that ops on ordered elements take (f32, f64, i32, i64),
/// and back. With `compared` the conversion keeps the order of elements.
/// Without it, sums and products wrap around as those of the original type do.
mlir::Value toOrdered(NodeImport &n, mlir::Value x, bool compared);
mlir::Value fromOrdered(NodeImport &n, mlir::Value x, mlir::Type element,
                        bool compared);

int64_t product(llvm::ArrayRef<int64_t> sizes);

/// Inserts zeros between the elements along the dimensions from `first` on, so
/// that neighbours are `strides` apart: n elements become (n - 1) * stride + 1.
mlir::Value spread(NodeImport &n, mlir::Value x, int64_t first,
                   llvm::ArrayRef<int64_t> strides);

/// Adds borders of a number, or of zeros. A negative width crops that many
/// elements.
mlir::Value padOrCrop(NodeImport &n, mlir::Value x, llvm::ArrayRef<int64_t> low,
                      llvm::ArrayRef<int64_t> high, mlir::Value border = {});

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_MATH_INDEXMATH_H
