//===- Sample.h - Some of very many measurements ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A measurement that goes on for hours keeps a sample of what it saw, each
// value with the same chance, in memory that does not grow (Vitter's algorithm
// R).
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_MEASURE_SAMPLE_H
#define PARTITA_TOOLS_PARTITA_RUN_MEASURE_SAMPLE_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>

namespace partita::run {

/// Says of each value where it is kept. The choice depends on nothing but their
/// number, so all processes of a run keep the values of the same steps.
class Sample {
public:
  /// Up to so many values are all kept.
  static constexpr size_t kMost = size_t(1) << 16;

  /// The place of the next value, below `kMost`: one past those that are kept,
  /// or that of a value which it replaces. Nothing: it is not kept.
  std::optional<size_t> next() {
    const uint64_t before = seen++;
    const uint64_t place = before < kMost ? before : random() % seen;
    return place < kMost ? std::optional<size_t>(place) : std::nullopt;
  }
  /// How many values there were.
  int64_t count() const { return int64_t(seen); }

private:
  uint64_t seen = 0;
  std::mt19937_64 random{1};
};

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_MEASURE_SAMPLE_H
