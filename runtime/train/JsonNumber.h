//===- JsonNumber.h - Numbers that JSON does not have -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAIN_JSONNUMBER_H
#define PARTITA_RUNTIME_TRAIN_JSONNUMBER_H

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

namespace partita::runtime::train {

/// A number, or the text "nan", "inf" or "-inf": a training that went wrong
/// must be seen in its files, and still be read by every reader of JSON.
template <typename Json> Json jsonNumber(double value) {
  if (std::isfinite(value))
    return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

template <typename Json>
std::optional<double> readJsonNumber(const Json &json) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (json.is_number())
    return json.template get<double>();
  if (json == "nan")
    return std::numeric_limits<double>::quiet_NaN();
  if (json == "inf")
    return kInfinity;
  if (json == "-inf")
    return -kInfinity;
  return std::nullopt;
}

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAIN_JSONNUMBER_H
