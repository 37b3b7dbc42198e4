//===- KnownFunction.h - Functions known by their values --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Models write GELU, swish and similar functions with several ops, in many
// orders. All orders compute the same function. So this code recognises the
// function and not the ops. It evaluates the ops at sample points and compares
// the values with those of the known functions.
//
//   x -> mul(mul(x, 0.5), add(erf(div(x, 1.4142135)), 1))     is gelu_erf
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CALLS_KNOWNFUNCTION_H
#define PARTITA_COMPILER_CODEGEN_CALLS_KNOWNFUNCTION_H

#include "compiler/codegen/StridedView.h"
#include "dialects/plan/PlanDialect.h"

namespace partita::codegen {

struct KnownFunction {
  plan::PostOpKind kind;
  double alpha = 0, beta = 0;
  mlir::Value result;
  OpSet used; ///< the ops that compute `result` from the argument
};

/// The post-op with the name of a pointwise op, without parameters. Nothing if
/// there is none, or if the op does not have `operands` operands.
std::optional<plan::PostOpKind> getPostOpKind(mlir::Operation *op,
                                              unsigned operands);

/// The function of one argument that the ops (in topological order) compute;
/// `arguments` are equal values of the same type. Its result is the first value
/// that everything passes through and that is a function which the library
/// knows.
std::optional<KnownFunction>
matchKnownFunction(llvm::ArrayRef<mlir::Value> arguments,
                   llvm::ArrayRef<mlir::Operation *> ops);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_CALLS_KNOWNFUNCTION_H
