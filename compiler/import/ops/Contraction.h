//===- Contraction.h - Products that several ops are made of ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_OPS_CONTRACTION_H
#define PARTITA_COMPILER_IMPORT_OPS_CONTRACTION_H

#include "compiler/import/graph/NodeImport.h"

namespace partita::import {

/// The product x . y, contracted over `xDim` of x and `yDim` of y. The first
/// `numBatch` dimensions of both are batch dimensions.
mlir::Value makeDot(NodeImport &n, mlir::Value x, mlir::Value y,
                    int64_t numBatch, int64_t xDim, int64_t yDim);

/// NumPy's matmul.
mlir::Value makeMatMul(NodeImport &n, mlir::Value x, mlir::Value y);

/// The convolution that the node's attributes (group, strides, pads, ...)
/// describe, without a bias. Padding has the value `outside`, or 0.
mlir::Value makeConv(NodeImport &n, mlir::Value x, mlir::Value weights,
                     mlir::Value outside = {});

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_OPS_CONTRACTION_H
