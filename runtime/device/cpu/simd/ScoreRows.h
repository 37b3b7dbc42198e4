//===- ScoreRows.h - Softmax of attention scores by hand --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_SIMD_SCOREROWS_H
#define PARTITA_RUNTIME_DEVICE_CPU_SIMD_SCOREROWS_H

#include <cstdint>

namespace partita::runtime {

/// A mask over rows and columns. If `data` is null there is none. Strides are
/// in elements; a stride of 0 broadcasts.
struct ScoreMask {
  const float *data = nullptr;
  int64_t row_stride = 0;
  int64_t column_stride = 0;
};

/// Dense rows of scores, replaced by softmax(scores * scale * multiplied +
/// added) over each row. The error of exp is below 2 units in the last place. A
/// row that has only -inf becomes NaN.
struct ScoreRows {
  float *scores = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  float scale = 1;
  ScoreMask multiplied, added;
};

using ScoreFunction = void (*)(const ScoreRows &);

void softmaxRowsBaseline(const ScoreRows &rows);
void softmaxRowsV3(const ScoreRows &rows);
void softmaxRowsV4(const ScoreRows &rows);

/// The best version for this processor.
ScoreFunction softmaxRows();

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_SIMD_SCOREROWS_H
