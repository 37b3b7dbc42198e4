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

/// Whether a random number of [0, 1) is at least `probability`, for each
/// element of a tensor of this shape: i1.
///
/// Each number is a function of the seed, of the node, of the running number of
/// the sample to which the element belongs, and of the element's place in the
/// sample. So it does not depend on how a step is cut into micro-batches, nor
/// on the device. A tensor whose elements are no multiple of the samples
/// belongs to the first sample of its micro-batch.
mlir::Value makeRandomMask(NodeImport &n, llvm::ArrayRef<int64_t> shape,
                           double probability);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_MATH_RANDOMBITS_H
