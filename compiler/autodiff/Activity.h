//===- Activity.h - What depends on what is differentiated ------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_AUTODIFF_ACTIVITY_H
#define PARTITA_COMPILER_AUTODIFF_ACTIVITY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

namespace partita::autodiff {

/// The values of floats that are computed from parameters with `nn.trained`,
/// and with `inputs` from the function's inputs of floats. Each maps to the
/// operand that it is active by; these themselves map to null.
llvm::DenseMap<mlir::Value, mlir::Value>
findActive(mlir::ModuleOp module, mlir::func::FuncOp function, bool inputs);

/// Adds what the ops of a block compute from active values, through floats.
void spreadActive(mlir::Block &block,
                  llvm::DenseMap<mlir::Value, mlir::Value> &active);

} // namespace partita::autodiff

#endif // PARTITA_COMPILER_AUTODIFF_ACTIVITY_H
