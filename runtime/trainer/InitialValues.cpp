//===- InitialValues.cpp - What training begins with ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/trainer/InitialValues.h"

#include "runtime/data/Philox.h"

#include <cmath>
#include <cstdlib>
#include <numbers>

namespace partita::runtime::train {
namespace {

/// FNV-1a, which is the same everywhere.
uint64_t hashOf(const std::string &name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name)
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

/// A number of [0, 1) with all bits that a double has.
double unitOf(uint32_t high, uint32_t low) {
  const uint64_t bits = (uint64_t(high) << 32 | low) >> 11;
  return std::ldexp(static_cast<double>(bits), -53);
}

} // namespace

template <typename T>
void draw(const Distribution &from, uint64_t seed, const std::string &name,
          std::span<T> elements) {
  const uint64_t tensor = hashOf(name);
  for (size_t i = 0; i < elements.size(); ++i) {
    double value = from.first;
    if (from.kind != Distribution::Kind::constant) {
      const auto words = data::philox(
          {static_cast<uint32_t>(i), static_cast<uint32_t>(uint64_t(i) >> 32),
           static_cast<uint32_t>(tensor), static_cast<uint32_t>(tensor >> 32)},
          {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
      const double unit = unitOf(words[0], words[1]);
      if (from.kind == Distribution::Kind::uniform)
        value = from.first + (from.second - from.first) * unit;
      else
        value = from.first +
                from.second * std::sqrt(-2 * std::log(1 - unit)) *
                    std::cos(2 * std::numbers::pi * unitOf(words[2], words[3]));
    }
    elements[i] = static_cast<T>(value);
  }
}
template void draw(const Distribution &, uint64_t, const std::string &,
                   std::span<float>);
template void draw(const Distribution &, uint64_t, const std::string &,
                   std::span<double>);

namespace {

/// The number behind ",NAME=", if it is finite.
std::optional<double> numberOf(const std::string &text, const char *name) {
  const std::string key = std::string(",") + name + "=";
  const size_t at = text.find(key);
  if (at == std::string::npos)
    return std::nullopt;
  char *end = nullptr;
  const char *begin = text.c_str() + at + key.size();
  const double value = std::strtod(begin, &end);
  if (end == begin || (*end != 0 && *end != ',') || !std::isfinite(value))
    return std::nullopt;
  return value;
}

} // namespace

std::optional<Distribution> parseDistribution(const std::string &text) {
  using Kind = Distribution::Kind;
  struct Form {
    const char *kind, *first, *second;
    Kind value;
  };
  for (const Form &form : {Form{"constant", "value", nullptr, Kind::constant},
                           Form{"uniform", "low", "high", Kind::uniform},
                           Form{"normal", "mean", "std", Kind::normal}}) {
    if (text.substr(0, text.find(',')) != form.kind)
      continue;
    const auto first = numberOf(text, form.first);
    const auto second =
        form.second ? numberOf(text, form.second) : std::optional<double>(0);
    if (!first || !second)
      return std::nullopt;
    return Distribution{form.value, *first, *second};
  }
  return std::nullopt;
}

} // namespace partita::runtime::train
