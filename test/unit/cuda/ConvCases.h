//===- ConvCases.h - Convolutions that cuDNN computes -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_CUDA_CONVCASES_H
#define PARTITA_TEST_UNIT_CUDA_CONVCASES_H

#include "runtime/device/cuda/rules/Conv.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <algorithm>

namespace partita::test {

/// x[N, C, spatial..] with windows, channels innermost.
struct ConvCase {
  const char *name;
  Shape x;
  int64_t outputs;
  Shape window, strides, dilations, pads;
  int64_t groups = 1;

  Shape weights() const {
    Shape shape = {outputs, x[1] / groups};
    shape.insert(shape.end(), window.begin(), window.end());
    return shape;
  }
  Shape result() const {
    Shape shape = {x[0], outputs};
    for (size_t i = 0; i < window.size(); ++i)
      shape.push_back(
          (x[i + 2] + 2 * pads[i] - (window[i] - 1) * dilations[i] - 1) /
              strides[i] +
          1);
    return shape;
  }
};

inline const std::vector<ConvCase> &convCases() {
  static const std::vector<ConvCase> cases = {
      {"3x3", {2, 8, 6, 5}, 12, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"stride 2", {1, 4, 9, 9}, 8, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
      {"dilated", {1, 4, 9, 9}, 4, {3, 3}, {1, 1}, {2, 2}, {2, 2}},
      {"7x7 of 3", {1, 3, 14, 14}, 16, {7, 7}, {2, 2}, {1, 1}, {3, 3}},
      {"1x1, stride 2", {1, 8, 6, 6}, 8, {1, 1}, {2, 2}, {1, 1}, {0, 0}},
      {"groups", {1, 8, 6, 6}, 12, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 4},
      {"depthwise", {1, 8, 6, 6}, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 8},
      {"one dimension", {2, 4, 11}, 8, {5}, {2}, {1}, {2}},
      {"three dimensions",
       {1, 4, 5, 4, 6},
       8,
       {3, 2, 3},
       {1, 1, 2},
       {1, 1, 1},
       {1, 0, 1}},
  };
  return cases;
}

/// The strides of a dense tensor whose second dimension lies innermost.
inline Shape channelsLast(const Shape &shape) {
  Shape order = shape, strides(shape.size());
  std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  const Shape dense = denseStrides(order);
  strides[0] = dense[0];
  strides[1] = 1;
  std::copy(dense.begin() + 1, dense.end() - 1, strides.begin() + 2);
  return strides;
}

} // namespace partita::test

#endif // PARTITA_TEST_UNIT_CUDA_CONVCASES_H
