//===- StatisticAttr.h - Running statistics ----------------------*- C++
//-*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_STATISTICATTR_H
#define PARTITA_DIALECTS_NN_STATISTICATTR_H

#include "llvm/ADT/StringRef.h"

namespace partita::nn {

/// On a parameter: it is a running statistic of a normalization, which is
/// measured and not trained. On a result with `nn.state`: it is the new value
/// of one, and needs no gradient.
inline constexpr llvm::StringLiteral kStatisticAttr = "nn.statistic";

} // namespace partita::nn

#endif // PARTITA_DIALECTS_NN_STATISTICATTR_H
