//===- AttentionCases.h - Attention that cuDNN computes ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_CUDA_ATTENTIONCASES_H
#define PARTITA_TEST_UNIT_CUDA_ATTENTIONCASES_H

#include "test/unit/cuda/ConvCases.h"

namespace partita::test {

/// q[B, H, M, D], k[B, H, L, D], v[B, H, L, E].
struct AttentionCase {
  const char *name;
  int64_t batch, heads, rows, keys, depth, width;
  bool heads_in_rows = false; ///< in memory: [B, rows, H, columns]
  bool has_mask = false;
  Shape mask = {}; ///< [B or 1, H or 1, M or 1, L]

  Shape q() const { return {batch, heads, rows, depth}; }
  Shape k() const { return {batch, heads, keys, depth}; }
  Shape v() const { return {batch, heads, keys, width}; }
  Shape result() const { return {batch, heads, rows, width}; }
  Shape scores() const { return {batch, heads, rows, keys}; }

  Shape stridesOf(const Shape &shape) const {
    if (!heads_in_rows)
      return denseStrides(shape);
    return {shape[1] * shape[2] * shape[3], shape[3], shape[1] * shape[3], 1};
  }
  /// The mask, as one of the shape of the scores.
  Shape maskStrides() const {
    Shape strides = denseStrides(mask);
    for (size_t i = 0; i < 3; ++i)
      if (mask[i] == 1)
        strides[i] = 0;
    return strides;
  }
};

inline const std::vector<AttentionCase> &attentionCases() {
  static const std::vector<AttentionCase> cases = {
      {"plain", 2, 3, 9, 9, 16, 16},
      {"heads in rows", 2, 4, 7, 7, 64, 64, true},
      {"other keys", 1, 2, 5, 19, 8, 8},
      {"one row", 2, 2, 1, 33, 64, 64},
      {"other values", 1, 2, 6, 10, 24, 40},
      {"mask", 2, 3, 9, 9, 16, 16, false, true, {2, 1, 1, 9}},
      {"mask of rows", 2, 3, 9, 8, 16, 16, true, true, {1, 1, 9, 8}},
      {"mask of heads", 1, 3, 4, 16, 16, 16, false, true, {1, 3, 4, 16}},
      {"mask of scores", 2, 2, 8, 8, 32, 32, true, true, {2, 2, 8, 8}},
  };
  return cases;
}

} // namespace partita::test

#endif // PARTITA_TEST_UNIT_CUDA_ATTENTIONCASES_H
