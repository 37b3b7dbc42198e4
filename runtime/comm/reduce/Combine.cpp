//===- Combine.cpp - How elements of devices are combined -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/reduce/Combine.h"

#include "runtime/base/BestLevel.h"

#include <optional>

namespace partita::runtime {
namespace {

std::optional<ElementFormat> formatOf(abi::DType dtype) {
  switch (dtype) {
  case abi::DType::f32:
    return ElementFormat::f32;
  case abi::DType::f64:
    return ElementFormat::f64;
  case abi::DType::f16:
    return ElementFormat::f16;
  case abi::DType::bf16:
    return ElementFormat::bf16;
  case abi::DType::i8:
    return ElementFormat::i8;
  case abi::DType::i16:
    return ElementFormat::i16;
  case abi::DType::i32:
    return ElementFormat::i32;
  case abi::DType::i64:
    return ElementFormat::i64;
  case abi::DType::u8:
    return ElementFormat::u8;
  case abi::DType::u16:
    return ElementFormat::u16;
  case abi::DType::u32:
    return ElementFormat::u32;
  case abi::DType::u64:
    return ElementFormat::u64;
  case abi::DType::boolean:
    return ElementFormat::boolean;
  case abi::DType::i4:
    return ElementFormat::i4;
  case abi::DType::u4:
    return ElementFormat::u4;
  case abi::DType::i2:
    return ElementFormat::i2;
  case abi::DType::u2:
    return ElementFormat::u2;
  default:
    return std::nullopt;
  }
}

} // namespace

CombineFunction combineFunction(abi::DType dtype, Reduction reduction) {
  const std::optional<ElementFormat> format = formatOf(dtype);
  if (!format)
    return nullptr;
  const CombineFunctions functions =
      atBestLevel(combineFunctionsBaseline, combineFunctionsV3,
                  combineFunctionsV4)(*format);
  switch (reduction) {
  case Reduction::sum:
    return functions.sum;
  case Reduction::prod:
    return functions.prod;
  case Reduction::max:
    return functions.max;
  case Reduction::min:
    return functions.min;
  }
  return nullptr;
}

} // namespace partita::runtime
