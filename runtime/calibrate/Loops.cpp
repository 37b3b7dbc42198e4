//===- Loops.cpp - Loops like those of compiled kernels -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled once for each instruction-set level, with PARTITA_LOOPS as the name.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/Loops.h"

namespace partita::runtime {
namespace {

void scale(const float *__restrict x, float *__restrict y, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    y[i] = 1.25f * x[i] + 0.5f;
}

void divide(const float *__restrict x, float *__restrict y, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    y[i] = 1.0f / (x[i] + 2.0f);
}

void transpose(const float *__restrict x, float *__restrict y, int64_t rows,
               int64_t columns) {
  constexpr int64_t kTile = 16;
  for (int64_t row = 0; row + kTile <= rows; row += kTile)
    for (int64_t column = 0; column + kTile <= columns; column += kTile)
      for (int64_t j = column; j < column + kTile; ++j)
        for (int64_t i = row; i < row + kTile; ++i)
          y[j * rows + i] = x[i * columns + j];
}

float sum(const float *x, int64_t count) {
  // As many sums as hide the latency of an addition.
  constexpr int64_t kSums = 128;
  float sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= count; i += kSums)
    for (int64_t j = 0; j < kSums; ++j)
      sums[j] += x[i + j];
  float result = 0;
  for (; i < count; ++i)
    result += x[i];
  for (float part : sums)
    result += part;
  return result;
}

} // namespace

extern const Loops PARTITA_LOOPS;
const Loops PARTITA_LOOPS = {scale, divide, transpose, sum};

} // namespace partita::runtime
