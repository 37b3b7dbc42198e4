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
#define PARTITA_CASE(name, ...)                                                \
  case abi::DType::name:                                                       \
    return ElementFormat::name;
    PARTITA_ELEMENT_FORMATS(PARTITA_CASE)
#undef PARTITA_CASE
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
