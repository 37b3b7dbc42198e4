//===- ScoreRows.cpp - Softmax of attention scores, vectorised by hand ----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled once for each instruction-set level; see Lanes.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/simd/ScoreRows.h"

#include "runtime/device/cpu/simd/Lanes.h"

namespace partita::runtime {
namespace {

constexpr float kInfinity = __builtin_inff();

/// The first `count` lanes from memory, the others `fill`.
inline Floats loadSome(const float *data, int64_t count, float fill) {
  Floats value = splat(fill);
  for (int64_t i = 0; i < count; ++i)
    value[i] = data[i];
  return value;
}
inline void storeSome(float *data, int64_t count, Floats value) {
  for (int64_t i = 0; i < count; ++i)
    data[i] = value[i];
}

/// Part of a mask's row. Lanes past `count` are not read.
inline Floats loadMask(const float *row, int64_t stride, int64_t at,
                       int64_t count) {
  if (stride == 0)
    return splat(row[0]);
  if (stride == 1 && count == kLanes)
    return load(row + at);
  Floats value = {};
  for (int64_t i = 0; i < count; ++i)
    value[i] = row[(at + i) * stride];
  return value;
}

inline void softmaxRow(float *row, int64_t columns, float scale,
                       const float *multiplied, int64_t multiplied_stride,
                       const float *added, int64_t added_stride) {
  Floats most = splat(-kInfinity);
  for (int64_t at = 0; at < columns; at += kLanes) {
    int64_t count = columns - at < kLanes ? columns - at : kLanes;
    bool whole = count == kLanes;
    Floats value = whole ? load(row + at) : loadSome(row + at, count, 0);
    value *= scale;
    if (multiplied)
      value *= loadMask(multiplied, multiplied_stride, at, count);
    if (added)
      value += loadMask(added, added_stride, at, count);
    if (whole) {
      store(row + at, value);
    } else {
      storeSome(row + at, count, value);
      value = loadSome(row + at, count, -kInfinity);
    }
    most = value > most ? value : most;
  }
  float highest = -kInfinity;
  for (int i = 0; i < kLanes; ++i)
    highest = most[i] > highest ? most[i] : highest;

  Floats sums = {};
  for (int64_t at = 0; at < columns; at += kLanes) {
    int64_t count = columns - at < kLanes ? columns - at : kLanes;
    bool whole = count == kLanes;
    Floats value = whole ? load(row + at) : loadSome(row + at, count, 0);
    value = expOf(value - highest);
    if (whole) {
      store(row + at, value);
    } else {
      storeSome(row + at, count, value);
      value = loadSome(row + at, count, 0);
    }
    sums += value;
  }
  float sum = 0;
  for (int i = 0; i < kLanes; ++i)
    sum += sums[i];

  float inverse = 1.0f / sum;
  int64_t at = 0;
  for (; at + kLanes <= columns; at += kLanes)
    store(row + at, load(row + at) * inverse);
  for (; at < columns; ++at)
    row[at] *= inverse;
}

} // namespace

void PARTITA_LEVEL(softmaxRows)(const ScoreRows &rows) {
  for (int64_t i = 0; i < rows.rows; ++i) {
    const ScoreMask &mul = rows.multiplied, &add = rows.added;
    softmaxRow(
        rows.scores + i * rows.columns, rows.columns, rows.scale,
        mul.data ? mul.data + i * mul.row_stride : nullptr, mul.column_stride,
        add.data ? add.data + i * add.row_stride : nullptr, add.column_stride);
  }
}

} // namespace partita::runtime
