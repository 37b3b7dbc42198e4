//===- PoolCases.h - Pools that cuDNN computes ------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_CUDA_POOLCASES_H
#define PARTITA_TEST_UNIT_CUDA_POOLCASES_H

#include "test/unit/cuda/ConvCases.h"

namespace partita::test {

/// x[N, C, spatial..].
struct PoolCase {
  const char *name;
  Shape x, window, strides, pads;
  bool channels_last = true;

  Shape result() const {
    Shape shape = {x[0], x[1]};
    for (size_t i = 0; i < window.size(); ++i)
      shape.push_back((x[i + 2] + 2 * pads[i] - window[i]) / strides[i] + 1);
    return shape;
  }
  Shape stridesOf(const Shape &shape) const {
    return channels_last ? channelsLast(shape) : denseStrides(shape);
  }
};

inline const std::vector<PoolCase> &poolCases() {
  static const std::vector<PoolCase> cases = {
      {"2x2", {2, 8, 6, 6}, {2, 2}, {2, 2}, {0, 0}},
      {"3x3 of 3, border", {1, 3, 9, 7}, {3, 3}, {2, 2}, {1, 1}},
      {"rest of the image", {2, 4, 8, 8}, {3, 3}, {2, 2}, {0, 0}},
      {"5x1", {1, 4, 9, 5}, {5, 1}, {1, 2}, {2, 0}},
      {"whole image", {2, 6, 7, 7}, {7, 7}, {7, 7}, {0, 0}},
      {"channels outside", {2, 5, 9, 7}, {3, 3}, {2, 2}, {1, 1}, false},
      {"one channel", {2, 1, 6, 6}, {3, 3}, {1, 1}, {1, 1}},
      {"one dimension", {2, 4, 11}, {3}, {2}, {1}},
      {"one dimension, channels outside", {2, 4, 11}, {4}, {3}, {2}, false},
      {"three dimensions",
       {1, 4, 5, 4, 6},
       {3, 2, 3},
       {1, 1, 2},
       {1, 0, 1},
       false},
  };
  return cases;
}

} // namespace partita::test

#endif // PARTITA_TEST_UNIT_CUDA_POOLCASES_H
