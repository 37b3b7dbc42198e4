//===- WorkKey.h - The same work in every plan ------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_COST_WORKKEY_H
#define PARTITA_COMPILER_COST_WORKKEY_H

#include "compiler/cost/CostModel.h"

namespace partita {

/// A hash of the ops of a cluster and of their shapes, with 64 bits. It ignores
/// names, locations and ops that move no bytes. So the same work has the same
/// key before and after stages are cut, with any number of devices, and in any
/// model. The key is never 0.
uint64_t getWorkKey(const ClusterWork &work);

} // namespace partita

#endif // PARTITA_COMPILER_COST_WORKKEY_H
