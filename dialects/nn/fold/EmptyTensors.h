//===- EmptyTensors.h - Tensors that have a dimension of 0 ------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tensors without elements are neither computed nor read. Every op of the
// dialect whose results have no elements folds to constants. Every op that
// reads a tensor without elements folds to the value that its definition gives
// without it. After folding, only inputs and outputs of the model and constants
// have no elements.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_FOLD_EMPTYTENSORS_H
#define PARTITA_DIALECTS_NN_FOLD_EMPTYTENSORS_H

#include "dialects/nn/NNDialect.h"

namespace partita::nn {

/// Whether a tensor has a dimension of 0.
bool hasNoElements(mlir::Type type);

/// A tensor in which every element is the combination of no elements.
mlir::DenseElementsAttr getNeutralTensor(ReduceKind kind,
                                         mlir::RankedTensorType type);

/// The fold rules. The dialect applies them after an op's own folder.
std::unique_ptr<mlir::DialectInterface>
createEmptyTensorFolds(mlir::Dialect *dialect);

} // namespace partita::nn

#endif // PARTITA_DIALECTS_NN_FOLD_EMPTYTENSORS_H
