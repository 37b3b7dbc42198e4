//===- Combine.h - How elements of devices are combined ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_REDUCE_COMBINE_H
#define PARTITA_RUNTIME_COMM_REDUCE_COMBINE_H

#include "runtime/comm/Collective.h"
#include "runtime/comm/reduce/CombineRows.h"

namespace partita::runtime {

/// The function for this processor; null if elements of this type have no such
/// reduction.
CombineFunction combineFunction(abi::DType dtype, Reduction reduction);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_COMM_REDUCE_COMBINE_H
