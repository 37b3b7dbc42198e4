//===- Activation.h - Activation functions made of several ops --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Models write GELU, swish and similar functions with several ops, in many
// orders. The code brings the ops into one form: a polynomial of x, and a
// polynomial of x times one function of x. The coefficients tell which
// activation it is.
//
//   mul(mul(x, 0.5), add(erf(div(x, 1.4142135)), 1))
//     = 0.5 x + 0.5 x erf(0.7071068 x)                      is gelu_erf
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CALLS_ACTIVATION_H
#define PARTITA_COMPILER_CODEGEN_CALLS_ACTIVATION_H

#include "compiler/codegen/StridedView.h"
#include "dialects/plan/PlanDialect.h"

namespace partita::codegen {

struct Activation {
  plan::PostOpKind kind;
  double alpha = 0, beta = 0;
  mlir::Value result;
  OpSet used; ///< the ops that compute `result` from the argument
};

/// The post-op with the name of a pointwise op, without parameters. Nothing if
/// there is none, or if the op does not have `operands` operands.
std::optional<plan::PostOpKind> getPostOpKind(mlir::Operation *op,
                                              unsigned operands);

/// The activation that the ops (in topological order) compute; `arguments` are
/// equal values of the same type. Its result is the first value that everything
/// passes through and that is a post-op of a library call.
std::optional<Activation>
matchActivation(llvm::ArrayRef<mlir::Value> arguments,
                llvm::ArrayRef<mlir::Operation *> ops);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_CALLS_ACTIVATION_H
