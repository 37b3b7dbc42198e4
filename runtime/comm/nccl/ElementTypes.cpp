//===- ElementTypes.cpp - What NCCL combines ------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/nccl/ElementTypes.h"

#include <optional>
#include <string>

namespace partita::runtime::nccl {
namespace {

struct Type {
  DataType type;
  bool adds;   ///< sums and products are those of the element
  bool orders; ///< so are maxima and minima
};

std::optional<Type> typeOf(abi::DType dtype) {
  switch (dtype) {
  case abi::DType::f32:
    return Type{DataType::float32, true, false};
  case abi::DType::f64:
    return Type{DataType::float64, true, false};
  case abi::DType::f16:
    return Type{DataType::float16, true, false};
  case abi::DType::bf16:
    return Type{DataType::bfloat16, true, false};
  case abi::DType::i8:
    return Type{DataType::int8, true, true};
  case abi::DType::u8:
    return Type{DataType::uint8, true, true};
  case abi::DType::i32:
    return Type{DataType::int32, true, true};
  case abi::DType::u32:
    return Type{DataType::uint32, true, true};
  case abi::DType::i64:
    return Type{DataType::int64, true, true};
  case abi::DType::u64:
    return Type{DataType::uint64, true, true};
  case abi::DType::boolean: // a byte of 0 or 1
  case abi::DType::u4:
  case abi::DType::u2:
    return Type{DataType::uint8, false, true};
  case abi::DType::i4: // its sign fills the byte
  case abi::DType::i2:
    return Type{DataType::int8, false, true};
  case abi::DType::i16:
  case abi::DType::u16:
  case abi::DType::f8e4m3fn:
  case abi::DType::f8e4m3fnuz:
  case abi::DType::f8e5m2:
  case abi::DType::f8e5m2fnuz:
  case abi::DType::f8e8m0:
  case abi::DType::f4e2m1:
    return std::nullopt;
  }
  return std::nullopt;
}

} // namespace

Expected<Combination> combinationOf(abi::DType dtype, Reduction reduction) {
  const std::optional<Type> found = typeOf(dtype);
  const bool adds = reduction == Reduction::sum || reduction == Reduction::prod;
  if (!found || !(adds ? found->adds : found->orders))
    return Status::error(std::string("NCCL has no ") +
                         abi::EnumNameReduction(reduction) + " of " +
                         abi::EnumNameDType(dtype));
  switch (reduction) {
  case Reduction::sum:
    return Combination{found->type, ReduceOp::sum};
  case Reduction::prod:
    return Combination{found->type, ReduceOp::prod};
  case Reduction::max:
    return Combination{found->type, ReduceOp::max};
  case Reduction::min:
    return Combination{found->type, ReduceOp::min};
  }
  return Status::error("there is no such reduction");
}

} // namespace partita::runtime::nccl
