//===- Accuracy.h - How many labels are predicted ---------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAINER_ACCURACY_H
#define PARTITA_RUNTIME_TRAINER_ACCURACY_H

#include <cstdint>

namespace partita::runtime::train {

/// Scores [outer, classes, inner], dense, and labels [outer, inner].
struct ScoreShape {
  int64_t outer = 0, classes = 0, inner = 1;
};

struct LabelCount {
  int64_t labels = 0; ///< that count
  /// Those whose score is the largest, or one of the five largest. Among equal
  /// scores the first class is the larger one.
  int64_t right = 0, rightOfFive = 0;
};

/// T: float or double. A label that is not a class counts as wrong.
template <typename T>
LabelCount countRight(const T *scores, const int64_t *labels, ScoreShape shape,
                      int64_t ignored) {
  LabelCount count;
  for (int64_t o = 0; o < shape.outer; ++o)
    for (int64_t i = 0; i < shape.inner; ++i) {
      const int64_t label = labels[o * shape.inner + i];
      if (label == ignored)
        continue;
      ++count.labels;
      if (label < 0 || label >= shape.classes)
        continue;
      const T *row = scores + o * shape.classes * shape.inner + i;
      const T own = row[label * shape.inner];
      int64_t larger = 0;
      for (int64_t c = 0; c < shape.classes; ++c) {
        const T other = row[c * shape.inner];
        larger += other > own || (other == own && c < label);
      }
      // NaN is no prediction.
      if (own != own)
        continue;
      count.right += larger == 0;
      count.rightOfFive += larger < 5;
    }
  return count;
}

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAINER_ACCURACY_H
