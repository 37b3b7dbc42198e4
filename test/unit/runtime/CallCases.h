//===- CallCases.h - Products and convolutions with values ------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_RUNTIME_CALLCASES_H
#define PARTITA_TEST_UNIT_RUNTIME_CALLCASES_H

#include "test/unit/runtime/CallRunner.h"

namespace partita::test {

inline double dotAt(const Tensor &lhs, const Tensor &rhs, const Shape &index) {
  Shape l = index, r = index;
  double sum = 0;
  size_t last = index.size() - 1;
  for (int64_t k = 0; k < lhs.shape[last]; ++k) {
    l[last] = k;
    r[last - 1] = k;
    sum += double(lhs.get(l)) * rhs.get(r);
  }
  return sum;
}

inline PostOpSpec postOp(abi::PostOpKind kind, float alpha = 0,
                         float beta = 0) {
  PostOpSpec post;
  post.kind = kind;
  post.alpha = alpha;
  post.beta = beta;
  return post;
}

struct ConvRow {
  std::string name;
  Shape input, weights; ///< [N, C, ..], [O, C/G, ..]
  int64_t groups = 1;
  Shape strides, dilations, low, high;
};

inline double convAt(const CallCase &call, const Shape &index) {
  const Tensor &input = call.operands[0], &weights = call.operands[1];
  const InstructionSpec &spec = call.spec;
  int64_t group = index[1] / (weights.shape[0] / spec.groups);
  double sum = 0;
  Shape taps(weights.shape.begin() + 1, weights.shape.end());
  forEachIndex(taps, [&](const Shape &tap) {
    Shape from = {index[0], group * weights.shape[1] + tap[0]};
    Shape weight = {index[1], tap[0]};
    for (size_t i = 0; i + 1 < taps.size(); ++i) {
      int64_t at = index[i + 2] * spec.strides[i] +
                   tap[i + 1] * spec.dilations[i] - spec.pads_low[i];
      if (at < 0 || at >= input.shape[i + 2])
        return;
      from.push_back(at);
      weight.push_back(tap[i + 1]);
    }
    sum += double(input.get(from)) * weights.get(weight);
  });
  return sum;
}

inline std::vector<int> channelsLast(size_t rank) {
  std::vector<int> order = {0};
  for (size_t i = 2; i < rank; ++i)
    order.push_back(static_cast<int>(i));
  order.push_back(1);
  return order;
}

inline CallCase convCase(const ConvRow &row, bool last) {
  CallCase call;
  call.spec.call = abi::CallKind::conv;
  call.spec.groups = row.groups;
  call.spec.strides = row.strides;
  call.spec.dilations = row.dilations;
  call.spec.pads_low = row.low;
  call.spec.pads_high = row.high;
  size_t rank = row.input.size();
  std::vector<int> order = last ? channelsLast(rank) : std::vector<int>();
  call.operands = {Tensor::random(row.input, 1, order),
                   Tensor::random(row.weights, 2).asWeight()};
  Shape result = {row.input[0], row.weights[0]};
  for (size_t i = 0; i + 2 < rank; ++i)
    result.push_back((row.input[i + 2] + row.low[i] + row.high[i] -
                      (row.weights[i + 2] - 1) * row.dilations[i] - 1) /
                         row.strides[i] +
                     1);
  call.result = Tensor::random(result, 3, order);
  return call;
}

inline const std::vector<ConvRow> &convRows() {
  static const std::vector<ConvRow> rows = {
      {"3x3",
       {2, 16, 9, 10},
       {32, 16, 3, 3},
       1,
       {1, 1},
       {1, 1},
       {1, 1},
       {1, 1}},
      {"strided",
       {1, 3, 17, 15},
       {8, 3, 5, 3},
       1,
       {2, 3},
       {1, 1},
       {2, 0},
       {1, 2}},
      {"pointwise",
       {1, 24, 7, 7},
       {40, 24, 1, 1},
       1,
       {1, 1},
       {1, 1},
       {0, 0},
       {0, 0}},
      {"depthwise",
       {1, 32, 12, 12},
       {32, 1, 3, 3},
       32,
       {2, 2},
       {1, 1},
       {0, 0},
       {1, 1}},
      {"depthwiseOfOnePixel",
       {1, 40, 3, 3},
       {40, 1, 3, 3},
       40,
       {1, 1},
       {1, 1},
       {0, 0},
       {0, 0}},
      {"grouped",
       {1, 12, 8, 8},
       {18, 4, 3, 3},
       3,
       {1, 1},
       {1, 1},
       {1, 1},
       {1, 1}},
      {"dilated",
       {1, 8, 14, 14},
       {8, 8, 3, 3},
       1,
       {1, 1},
       {2, 3},
       {2, 3},
       {2, 3}},
      {"cutoff", {1, 4, 8, 8}, {4, 4, 3, 3}, 1, {2, 2}, {1, 1}, {0, 0}, {0, 0}},
      {"oneChannel",
       {1, 1, 28, 28},
       {10, 1, 5, 5},
       1,
       {1, 1},
       {1, 1},
       {0, 0},
       {0, 0}},
      {"onePixel",
       {2, 16, 1, 1},
       {8, 16, 1, 1},
       1,
       {1, 1},
       {1, 1},
       {0, 0},
       {0, 0}},
      {"1d", {2, 6, 20}, {8, 6, 3}, 1, {2}, {1}, {1}, {0}},
      {"3d",
       {1, 4, 5, 6, 7},
       {8, 4, 2, 3, 3},
       1,
       {1, 2, 1},
       {1, 1, 1},
       {0, 1, 1},
       {1, 1, 1}}};
  return rows;
}

} // namespace partita::test

#endif // PARTITA_TEST_UNIT_RUNTIME_CALLCASES_H
