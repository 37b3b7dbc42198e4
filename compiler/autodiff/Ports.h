//===- Ports.h - Results of the model's function ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_AUTODIFF_PORTS_H
#define PARTITA_COMPILER_AUTODIFF_PORTS_H

#include "dialects/nn/NNDialect.h"
#include "dialects/nn/grad/GradientAttr.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::autodiff {

/// On weights: that they are trained, or why not (a string).
using nn::kTrainedAttr;
inline constexpr llvm::StringLiteral kUntrainedAttr = "nn.untrained";

/// On a result of the model's function: how many numbers the loss is the mean
/// of. The loss itself is their sum then.
inline constexpr llvm::StringLiteral kCountAttr = "nn.loss_count";

/// The one function of a module; null, with an error, if there are others.
mlir::func::FuncOp getModelFunction(mlir::ModuleOp module);

/// Adds a result that tells of wrong indices, see dialects/nn/CheckAttr.h.
void addCheck(mlir::func::FuncOp function, mlir::Value value,
              mlir::DictionaryAttr description);

struct Result {
  mlir::Value value;
  std::string name;
};

/// Gives a function these outputs, and no others. None of them counts samples.
/// Results that tell of wrong indices, and new values of states, stay behind
/// them.
/// Removes what nobody needs any more.
void setResults(mlir::func::FuncOp function, llvm::ArrayRef<Result> results);

/// Adds an input behind the others, as the last of the model.
mlir::FailureOr<mlir::BlockArgument> addInput(mlir::func::FuncOp function,
                                              llvm::StringRef name,
                                              mlir::RankedTensorType type);

} // namespace partita::autodiff

#endif // PARTITA_COMPILER_AUTODIFF_PORTS_H
