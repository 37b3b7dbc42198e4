//===- WorkKey.h - The same work in every plan ------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_COST_WORKKEY_H
#define PARTITA_COMPILER_PIPELINE_COST_WORKKEY_H

#include "compiler/pipeline/cost/MachineModel.h"

namespace partita::pipeline {

/// A number that is the same for the same ops on the same shapes and, but for
/// accidents of 2^-64, another for others. Neither names nor places count, nor
/// what moves no bytes: it is the same before stages are cut and afterwards,
/// with any number of devices, and in any model. Never 0.
uint64_t getWorkKey(const ClusterWork &work);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_COST_WORKKEY_H
