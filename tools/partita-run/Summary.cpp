//===- Summary.cpp - Outputs as a person wants to see them ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Summary.h"

#include "Format.h"

#include <algorithm>
#include <cmath>

namespace partita::run {

namespace {

constexpr int64_t kShown = 10;

std::string valueText(const runtime::Tensor &tensor, int64_t i) {
  const uint8_t *element =
      tensor.data() + i * runtime::elementBytes(tensor.dtype());
  if (runtime::isFloat(tensor.dtype()))
    return numberText(runtime::toDouble(tensor.dtype(), element), 5);
  if (tensor.dtype() == abi::DType::boolean)
    return *element ? "true" : "false";
  if (tensor.dtype() == abi::DType::u64)
    return numberText(runtime::toDouble(tensor.dtype(), element), 20);
  return std::to_string(runtime::toInteger(tensor.dtype(), element));
}

} // namespace

std::string summaryText(const std::vector<runtime::NamedTensor> &tensors) {
  std::string text;
  for (const auto &[name, tensor] : tensors) {
    text += name + "  " + tensor.typeText() + "\n";
    const int64_t count = tensor.elements();
    if (count == 0)
      continue;
    text += " ";
    for (int64_t i = 0; i < std::min(count, kShown); ++i)
      text += " " + valueText(tensor, i);
    text += count > kShown ? " ...\n" : "\n";
    const int64_t size = runtime::elementBytes(tensor.dtype());
    double sum = 0, least = INFINITY, most = -INFINITY;
    int64_t odd = 0;
    for (int64_t i = 0; i < count; ++i) {
      double value =
          runtime::toDouble(tensor.dtype(), tensor.data() + i * size);
      if (std::isnan(value)) {
        ++odd;
        continue;
      }
      sum += value;
      least = std::min(least, value);
      most = std::max(most, value);
    }
    if (odd < count)
      text += "  min " + numberText(least, 5) + "  max " + numberText(most, 5) +
              "  mean " + numberText(sum / double(count - odd), 5);
    if (odd > 0)
      text += "  NaN " + std::to_string(odd) + " of " + std::to_string(count);
    text += "\n";
  }
  return text;
}

} // namespace partita::run
