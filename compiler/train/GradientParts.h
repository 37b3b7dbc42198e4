//===- GradientParts.h - What each node adds to a gradient ------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_TRAIN_GRADIENTPARTS_H
#define PARTITA_COMPILER_TRAIN_GRADIENTPARTS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace partita::train {

/// The terms of a gradient that is a sum, those of each node added up; or the
/// gradient as it is, if all of them are of one node. What is rearranged in the
/// same way after each term, as the transpose of a table that several read, is
/// moved to the terms. Ops are made with `b`.
llvm::SmallVector<mlir::Value> partByNode(mlir::ImplicitLocOpBuilder &b,
                                          mlir::Value gradient);

} // namespace partita::train

#endif // PARTITA_COMPILER_TRAIN_GRADIENTPARTS_H
