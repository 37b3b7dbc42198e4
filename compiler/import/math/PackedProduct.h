//===- PackedProduct.h - Products with dequantised weights ------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_MATH_PACKEDPRODUCT_H
#define PARTITA_COMPILER_IMPORT_MATH_PACKEDPRODUCT_H

#include "compiler/import/graph/NodeImport.h"

namespace partita::import {

/// The product of x [.., K], of f32, and of weights `y`, a matrix whose
/// dimension `yDim` is summed over, which were dequantised from integers of 2,
/// 4 or 8 bits: they stay integers (nn.packed_dot). Returns null if y is
/// something else, or its scales differ along K in another way than by blocks
/// of a power of two.
mlir::FailureOr<mlir::Value> dotPacked(NodeImport &n, mlir::Value x,
                                       mlir::Value y, int64_t yDim);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_MATH_PACKEDPRODUCT_H
