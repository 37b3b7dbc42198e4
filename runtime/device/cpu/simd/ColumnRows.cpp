//===- ColumnRows.cpp - A vector times a matrix, vectorised by hand -------===//
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

/// Adds the products with rows k to k + count - 1 of the weights.
template <int count> void addRows(const ColumnProduct &product, int64_t k) {
  const float *weights = product.weights + k * product.stride,
              *factors = product.vector + k;
  int64_t i = 0;
  for (; i + kLanes <= product.width; i += kLanes) {
    Floats sum = load(product.result + i);
#pragma GCC unroll 4
    for (int row = 0; row < count; ++row)
      sum += load(weights + row * product.stride + i) * factors[row];
    store(product.result + i, sum);
  }
  for (; i < product.width; ++i)
    for (int row = 0; row < count; ++row)
      product.result[i] += weights[row * product.stride + i] * factors[row];
}

} // namespace

void PARTITA_LEVEL(multiplyColumns)(const ColumnProduct &product) {
  constexpr int kRows = 4;
  std::fill_n(product.result, product.width, 0.0f);
  int64_t k = 0;
  for (; k + kRows <= product.depth; k += kRows)
    addRows<kRows>(product, k);
  for (; k < product.depth; ++k)
    addRows<1>(product, k);
}

} // namespace partita::runtime
