//===- Recomputed.h - What is computed again for gradients ------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_ANALYSIS_RECOMPUTED_H
#define PARTITA_COMPILER_ANALYSIS_RECOMPUTED_H

#include "llvm/ADT/StringRef.h"

namespace partita::analysis {

/// On an op, and later on its cluster: it computes again, for gradients, what
/// forward has computed. So it is part of the backward of its stage.
inline constexpr llvm::StringLiteral kRecomputedAttr = "dist.recomputed";

/// On an op of a cluster that is computed twice: those of its results that
/// leave the cluster, whoever reads them. So both write the same.
inline constexpr llvm::StringLiteral kYieldedAttr = "nn.yielded";

} // namespace partita::analysis

#endif // PARTITA_COMPILER_ANALYSIS_RECOMPUTED_H
