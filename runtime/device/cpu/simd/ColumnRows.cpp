//===- ColumnRows.cpp - Vectors times a matrix, vectorised by hand --------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled once for each instruction-set level; see Lanes.h. The weights are
// read once, some rows at a time, and the sums stay in the nearest cache.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/simd/ColumnRows.h"

#include "runtime/device/cpu/simd/Lanes.h"

#include <algorithm>

namespace partita::runtime {
namespace {

/// Adds the products with `count` rows of the weights to one result.
template <int count>
void addRows(const ColumnProduct &product, const float *weights,
             const float *factors, float *result) {
  int64_t i = 0;
  for (; i + kLanes <= product.width; i += kLanes) {
    Floats sum = load(result + i);
#pragma GCC unroll 4
    for (int k = 0; k < count; ++k)
      sum += load(weights + k * product.stride + i) * factors[k];
    store(result + i, sum);
  }
  for (; i < product.width; ++i)
    for (int k = 0; k < count; ++k)
      result[i] += weights[k * product.stride + i] * factors[k];
}

} // namespace

void PARTITA_LEVEL(multiplyColumns)(const ColumnProduct &product) {
  constexpr int kRows = 4;
  std::fill_n(product.result, product.count * product.width, 0.0f);
  for (int64_t k = 0; k < product.depth;) {
    const bool isWhole = k + kRows <= product.depth;
    for (int64_t v = 0; v < product.count; ++v) {
      const float *factors = product.vectors + v * product.depth + k,
                  *weights = product.weights + k * product.stride;
      float *result = product.result + v * product.width;
      if (isWhole)
        addRows<kRows>(product, weights, factors, result);
      else
        addRows<1>(product, weights, factors, result);
    }
    k += isWhole ? kRows : 1;
  }
}

} // namespace partita::runtime
