//===- WeightsOnly.h - Values that depend on weights only -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SIMPLIFY_WEIGHTSONLY_H
#define PARTITA_COMPILER_SIMPLIFY_WEIGHTSONLY_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace partita::simplify {

/// Answers whether values depend on weights and constants only, and are thus
/// computed once, when a model is loaded. Remembers its answers: an object is
/// good until an op it has seen is erased.
class WeightsOnly {
public:
  bool operator()(mlir::Value value);

private:
  llvm::DenseMap<mlir::Operation *, bool> known;
};

/// The number that all elements of a constant of floats are.
std::optional<double> getFloatSplat(mlir::Value value);

} // namespace partita::simplify

#endif // PARTITA_COMPILER_SIMPLIFY_WEIGHTSONLY_H
