//===- RandomBits.h - Random numbers of training ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_MATH_RANDOMBITS_H
#define PARTITA_COMPILER_IMPORT_MATH_RANDOMBITS_H

#include "compiler/import/graph/NodeImport.h"

namespace partita::import {

/// Random numbers, one for each element of a tensor.
///
/// While a model learns, each number is a function of the seed, of the node, of
/// the running number of the sample to which the element belongs, and of the
/// element's place in the sample. So it does not depend on how a step is cut
/// into micro-batches, nor on the device. A tensor whose elements are no
/// multiple of the samples belongs to the first sample of its micro-batch.
///
/// In an evaluation the numbers are the same for each micro-batch.

/// Whether a number of [0, 1) is at least `probability`: i1.
mlir::Value makeRandomMask(NodeImport &n, llvm::ArrayRef<int64_t> shape,
                           double probability);
/// Numbers of [0, 1) of a type of floats.
mlir::Value makeUniformNumbers(NodeImport &n, llvm::ArrayRef<int64_t> shape,
                               mlir::FloatType type);
/// Numbers of the normal distribution with mean 0 and variance 1.
mlir::Value makeNormalNumbers(NodeImport &n, llvm::ArrayRef<int64_t> shape,
                              mlir::FloatType type);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_MATH_RANDOMBITS_H
