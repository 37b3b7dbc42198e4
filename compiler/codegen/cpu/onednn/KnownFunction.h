//===- KnownFunction.h - Functions known by their values --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Models write GELU, swish and the like with several ops in many orders. All
// orders compute the same function, so it is the function that is recognised:
// the ops are evaluated at sample points and compared with the known ones.
//
//   x -> mul(mul(x, 0.5), add(erf(div(x, 1.4142135)), 1))     is gelu_erf
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_KNOWNFUNCTION_H
#define PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_KNOWNFUNCTION_H

#include "compiler/codegen/StridedView.h"
#include "dialects/plan/PlanDialect.h"

namespace partita::codegen::onednn {

struct KnownFunction {
  plan::PostOpKind kind;
  double alpha = 0, beta = 0;
  mlir::Value result;
  OpSet used; ///< the ops that compute `result` from the argument
};

/// The post-op that a pointwise op is: the one of the same name, without
/// parameters. `operands`: how many it must have.
std::optional<plan::PostOpKind> getPostOpKind(mlir::Operation *op,
                                              unsigned operands);

/// The function that the ops (in topological order) apply to `argument`, up to
/// the first value through which everything passes and that is a function the
/// library knows.
std::optional<KnownFunction>
matchKnownFunction(mlir::Value argument, llvm::ArrayRef<mlir::Operation *> ops);

} // namespace partita::codegen::onednn

#endif // PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_KNOWNFUNCTION_H
