//===- EmptyTensors.h - Tensors that have a dimension of 0 ------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing is computed for a tensor without elements, and nothing is read of it:
// every op of the dialect whose results have none folds to constants, and every
// op that reads one folds to what its definition gives without it. What is left
// of such tensors are the model's own inputs and outputs, and constants.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_FOLD_EMPTYTENSORS_H
#define PARTITA_DIALECTS_NN_FOLD_EMPTYTENSORS_H

#include "dialects/nn/NNDialect.h"

namespace partita::nn {

/// Whether a tensor has a dimension of 0.
bool hasNoElements(mlir::Type type);

/// What a combination of no elements gives, everywhere in a tensor.
mlir::DenseElementsAttr getNeutralTensor(ReduceKind kind,
                                         mlir::RankedTensorType type);

/// The rules; the dialect asks them after an op's own folder.
std::unique_ptr<mlir::DialectInterface>
createEmptyTensorFolds(mlir::Dialect *dialect);

} // namespace partita::nn

#endif // PARTITA_DIALECTS_NN_FOLD_EMPTYTENSORS_H
