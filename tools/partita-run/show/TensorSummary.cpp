//===- TensorSummary.cpp - Outputs as a person wants to see them ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/show/TensorSummary.h"

#include "tools/partita-run/show/Format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace partita::run {

namespace {

/// Of a row, and of all rows: all of them if they are few, else the first ones.
constexpr int64_t kShownColumns = 10;
constexpr int64_t kAllRows = 16;
constexpr int64_t kFirstRows = 3;

/// `plain`: with four decimals, as suits numbers around one.
std::string valueText(const runtime::Tensor &tensor, int64_t i, bool plain) {
  const uint8_t *element =
      tensor.data() + i * runtime::elementBytes(tensor.dtype());
  if (runtime::isFloat(tensor.dtype())) {
    char text[32];
    std::snprintf(text, sizeof text, plain ? "%.4f" : "%.4g",
                  runtime::toDouble(tensor.dtype(), element));
    return text;
  }
  if (tensor.dtype() == abi::DType::boolean)
    return *element ? "true" : "false";
  if (tensor.dtype() == abi::DType::u64)
    return numberText(runtime::toDouble(tensor.dtype(), element), 20);
  return std::to_string(runtime::toInteger(tensor.dtype(), element));
}

/// The first elements, a line for each row of the last dimension, in columns.
std::string rowsText(const runtime::Tensor &tensor) {
  const int64_t columns = tensor.shape().empty() ? 1 : tensor.shape().back();
  const int64_t rows = tensor.elements() / columns;
  const int64_t shownColumns = std::min(columns, kShownColumns);
  const int64_t shownRows = rows <= kAllRows ? rows : kFirstRows;
  auto position = [&](int64_t i) {
    return i / shownColumns * columns + i % shownColumns;
  };
  double largest = 0;
  for (int64_t i = 0; i < shownRows * shownColumns; ++i)
    largest = std::max(
        largest, std::fabs(runtime::toDouble(
                     tensor.dtype(),
                     tensor.data() +
                         position(i) * runtime::elementBytes(tensor.dtype()))));
  const bool plain = largest >= 1e-2 && largest < 1e5;
  std::vector<std::string> values;
  size_t width = 0;
  for (int64_t i = 0; i < shownRows * shownColumns; ++i) {
    values.push_back(valueText(tensor, position(i), plain));
    width = std::max(width, values.back().size());
  }
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    text += (i % shownColumns == 0 ? "  " : " ") +
            std::string(width - values[i].size(), ' ') + values[i];
    if ((i + 1) % shownColumns == 0)
      text += shownColumns < columns ? " ...\n" : "\n";
  }
  return shownRows < rows ? text + "  ...\n" : text;
}

} // namespace

std::string summaryText(const std::vector<runtime::NamedTensor> &tensors) {
  std::string text;
  for (const auto &[name, tensor] : tensors) {
    text += name + "  " + tensor.typeText() + "\n";
    const int64_t count = tensor.elements();
    if (count == 0)
      continue;
    text += rowsText(tensor);
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
