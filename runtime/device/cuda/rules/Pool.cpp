//===- Pool.cpp - Pooling as cuDNN computes it ----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/rules/Pool.h"

#include <utility>

namespace partita::rules {

using abi::DType;

namespace {

/// The most spatial dimensions that the library has.
constexpr size_t kMostSpatial = 3;

const char *describeWindow(const Pooling &wanted, size_t dimensions) {
  for (size_t i = 0; i < dimensions; ++i) {
    if (wanted.dilations[i] != 1)
      return "its windows have gaps";
    if (wanted.pads_low[i] != wanted.pads_high[i])
      return "its pads differ at both ends";
    if (wanted.pads_low[i] >= wanted.window[i])
      return "a window lies in the border alone";
  }
  return wanted.has_steps ? "it has an epilogue" : nullptr;
}

/// A dimension along which nothing is combined, before or behind the others.
void addDimension(Pool &pool, bool before) {
  for (auto [values, neutral] :
       {std::pair(&pool.window, 1), {&pool.strides, 1}, {&pool.pads, 0}})
    values->insert(before ? values->begin() : values->end(), neutral);
}

/// [N, C, spatial..] as [N, 1, spatial.., C], dense.
Image oneChannel(std::span<const int64_t> shape) {
  std::vector<int64_t> one(shape.begin(), shape.end());
  one[1] = 1;
  one.push_back(shape[1]);
  return denseImage(one, imageOrder(one.size(), false));
}

} // namespace

const char *describePool(const Pooling &wanted, Pool &pool) {
  pool = {};
  const size_t rank = wanted.x.shape.size();
  pool.type = wanted.x.type;
  pool.mode = !wanted.average      ? PoolMode::max
              : wanted.include_pad ? PoolMode::average_with_pads
                                   : PoolMode::average;
  if (pool.type != DType::f32 && pool.type != DType::f16 &&
      pool.type != DType::bf16)
    return "it has no code for their type";
  if (wanted.result.type != pool.type || wanted.result.shape.size() != rank)
    return "its operands have different types or ranks";
  if (rank < 3 || rank > 2 + kMostSpatial)
    return "it has not one to three spatial dimensions";
  for (const Tensor *tensor : {&wanted.x, &wanted.result})
    if (!isCountable(*tensor))
      return "an operand is empty, or has more elements than 32 bits count";
  if (const char *why = describeWindow(wanted, rank - 2))
    return why;
  pool.window.assign(wanted.window.begin(), wanted.window.end());
  pool.strides.assign(wanted.strides.begin(), wanted.strides.end());
  pool.pads.assign(wanted.pads_low.begin(), wanted.pads_low.end());
  auto lies = [&](std::span<const size_t> order) {
    return isDense(wanted.x, order) && isDense(wanted.result, order);
  };
  if (const std::vector<size_t> plain = imageOrder(rank, false); lies(plain)) {
    pool.x = denseImage(wanted.x.shape, plain);
    pool.result = denseImage(wanted.result.shape, plain);
    if (rank == 3)
      addDimension(pool, /*before=*/true);
    return nullptr;
  }
  if (!lies(imageOrder(rank, true)))
    return "its images do not lie densely, with their channels outermost or "
           "innermost";
  if (rank == 2 + kMostSpatial)
    return "its images have three dimensions, and their channels innermost";
  pool.x = oneChannel(wanted.x.shape);
  pool.result = oneChannel(wanted.result.shape);
  addDimension(pool, /*before=*/false);
  return nullptr;
}

} // namespace partita::rules
