//===- CheckAttr.h - Attributes of results and weights ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_CHECKATTR_H
#define PARTITA_DIALECTS_NN_CHECKATTR_H

#include "llvm/ADT/StringRef.h"

namespace partita::nn {

/// An attribute of a result tensor<rows x 2 x i64> of the model's function.
/// The result is no output: it tells of wrong indices. Each row of it is about
/// as many of them. It has the place among these of the first one that is not
/// in low .. high, or their number if all are; and that index. The attribute
/// is a dictionary:
///
///   {op = "Gather", node = "embed", operand = "indices", tensor = "ids",
///    shape = array<i64: 4, 128>, low = array<i64: -1000>,
///    high = array<i64: 999>}
inline constexpr llvm::StringLiteral kCheckAttr = "nn.check";

/// On a parameter: it is a running statistic of a normalization, which is
/// measured and not trained. On a result with `nn.state`: it is the new value
/// of one, and needs no gradient.
inline constexpr llvm::StringLiteral kStatisticAttr = "nn.statistic";

/// On the choice between the new and the old value of a running statistic: it
/// is the new one if the step is finite, which gradients decide, too.
inline constexpr llvm::StringLiteral kGuardAttr = "nn.guard";

/// On a weight: what the model says that it is: "parameter", "buffer" or
/// "constant".
inline constexpr llvm::StringLiteral kDeclaredAttr = "nn.declared";
inline constexpr llvm::StringLiteral kDeclaredParameter = "parameter";

/// On a weight: how PyTorch's layer draws it at random, as text:
/// "constant,value=0", "uniform,low=-0.5,high=0.5" or "normal,mean=0,std=1".
inline constexpr llvm::StringLiteral kDefaultInitialAttr = "nn.default_initial";
/// On a weight: [fan-in, fan-out], array<i64>.
inline constexpr llvm::StringLiteral kFansAttr = "nn.fans";
/// On a state: how it is drawn when training begins, as text.
inline constexpr llvm::StringLiteral kInitialAttr = "nn.initial";

} // namespace partita::nn

#endif // PARTITA_DIALECTS_NN_CHECKATTR_H
