//===- ElementTypes.h - What NCCL combines ----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_NCCL_ELEMENTTYPES_H
#define PARTITA_RUNTIME_COMM_NCCL_ELEMENTTYPES_H

#include "runtime/base/Status.h"
#include "runtime/comm/Collective.h"
#include "runtime/comm/nccl/library/Types.h"

namespace partita::runtime::nccl {

struct Combination {
  DataType type = DataType::uint8;
  ReduceOp op = ReduceOp::sum;
};

/// How NCCL combines elements as Collective.h says, but for the order of sums
/// and products. An error names the type and the reduction that it cannot do:
///
///   16-bit integers       it has no such type
///   4 and 2 bits          one element a byte: sums do not wrap around
///   max and min of floats it drops NaN
///
/// What is only moved needs no type: it goes as bytes.
Expected<Combination> combinationOf(abi::DType dtype, Reduction reduction);

} // namespace partita::runtime::nccl

#endif // PARTITA_RUNTIME_COMM_NCCL_ELEMENTTYPES_H
