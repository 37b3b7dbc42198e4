//===- ElementTypes.cpp - What NCCL combines ------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/nccl/ElementTypes.h"

#include <string>

namespace partita::runtime::nccl {
namespace {

/// NCCL has no other types.
const struct Type {
  abi::DType dtype;
  DataType type;
  bool adds;   ///< sums and products are those of the element
  bool orders; ///< so are maxima and minima
} kTypes[] = {
    {abi::DType::f32, DataType::float32, true, false},
    {abi::DType::f64, DataType::float64, true, false},
    {abi::DType::f16, DataType::float16, true, false},
    {abi::DType::bf16, DataType::bfloat16, true, false},
    {abi::DType::i8, DataType::int8, true, true},
    {abi::DType::u8, DataType::uint8, true, true},
    {abi::DType::i32, DataType::int32, true, true},
    {abi::DType::u32, DataType::uint32, true, true},
    {abi::DType::i64, DataType::int64, true, true},
    {abi::DType::u64, DataType::uint64, true, true},
    {abi::DType::boolean, DataType::uint8, false, true}, // a byte of 0 or 1
    {abi::DType::u4, DataType::uint8, false, true},
    {abi::DType::u2, DataType::uint8, false, true},
    {abi::DType::i4, DataType::int8, false, true}, // its sign fills the byte
    {abi::DType::i2, DataType::int8, false, true},
};

// They have the same numbers.
static_assert(ReduceOp(Reduction::sum) == ReduceOp::sum &&
              ReduceOp(Reduction::prod) == ReduceOp::prod &&
              ReduceOp(Reduction::max) == ReduceOp::max &&
              ReduceOp(Reduction::min) == ReduceOp::min);

} // namespace

Expected<Combination> combinationOf(abi::DType dtype, Reduction reduction) {
  const bool adds = reduction == Reduction::sum || reduction == Reduction::prod;
  for (const Type &each : kTypes)
    if (each.dtype == dtype && (adds ? each.adds : each.orders))
      return Combination{each.type, ReduceOp(reduction)};
  return Status::error(std::string("NCCL has no ") +
                       abi::EnumNameReduction(reduction) + " of " +
                       abi::EnumNameDType(dtype));
}

} // namespace partita::runtime::nccl
