//===- ModelFunction.h - What a module computes -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_MODEL_MODELFUNCTION_H
#define PARTITA_COMPILER_MODEL_MODELFUNCTION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita {

/// The model's function: the module's only one with a body. Fails with a
/// diagnostic if there is none, or several.
mlir::FailureOr<mlir::func::FuncOp> getModelFunction(mlir::ModuleOp module);

/// Makes these the results of a function, with an attribute dictionary each.
void setResults(mlir::func::FuncOp function, mlir::ValueRange values,
                llvm::ArrayRef<mlir::DictionaryAttr> attributes);

/// Bytes of the weights that a function names, each once.
int64_t getWeightBytes(mlir::func::FuncOp function);

/// The ops of a block that are computed in every micro-batch, in order. Ops
/// that are known at load, states themselves and the terminator are left out.
llvm::SmallVector<mlir::Operation *> getActiveOps(mlir::Block &block);

} // namespace partita

#endif // PARTITA_COMPILER_MODEL_MODELFUNCTION_H
