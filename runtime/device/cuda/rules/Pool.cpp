//===- Pool.cpp - Pooling as cuDNN computes it ----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/rules/Pool.h"

#include <algorithm>

namespace partita::rules {

using abi::DType;

namespace {

/// The most spatial dimensions that the library has.
constexpr size_t kMostSpatial = 3;

class PoolDescriber {
public:
  PoolDescriber(const Pooling &wanted, Pool &pool)
      : wanted(wanted), pool(pool), rank(wanted.x.shape.size()) {}

  const char *describe() {
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
    if (const char *why = describeWindow())
      return why;
    return describeImages();
  }

private:
  const char *describeWindow() {
    for (size_t i = 0; i < rank - 2; ++i) {
      if (wanted.dilations[i] != 1)
        return "its windows have gaps";
      if (wanted.pads_low[i] != wanted.pads_high[i])
        return "its pads differ at both ends";
      if (wanted.pads_low[i] >= wanted.window[i])
        return "a window lies in the border alone";
    }
    return wanted.has_steps ? "it has an epilogue" : nullptr;
  }

  const char *describeImages() {
    pool.window.assign(wanted.window.begin(), wanted.window.end());
    pool.strides.assign(wanted.strides.begin(), wanted.strides.end());
    pool.pads.assign(wanted.pads_low.begin(), wanted.pads_low.end());
    auto lies = [&](std::span<const size_t> order) {
      return isDense(wanted.x, order) && isDense(wanted.result, order);
    };
    const std::vector<size_t> plain = imageOrder(rank, false),
                              last = imageOrder(rank, true);
    if (lies(plain)) {
      pool.x = image(wanted.x.shape);
      pool.result = image(wanted.result.shape);
      if (rank == 3)
        addDimension(pool.window.begin(), pool.strides.begin(),
                     pool.pads.begin());
      return nullptr;
    }
    if (!lies(last))
      return "its images do not lie densely, with their channels outermost or "
             "innermost";
    if (rank == 2 + kMostSpatial)
      return "its images have three dimensions, and their channels innermost";
    pool.x = image(oneChannel(wanted.x.shape));
    pool.result = image(oneChannel(wanted.result.shape));
    addDimension(pool.window.end(), pool.strides.end(), pool.pads.end());
    return nullptr;
  }

  using Place = std::vector<int64_t>::iterator;

  /// A dimension along which nothing is combined.
  void addDimension(Place window, Place strides, Place pads) {
    pool.window.insert(window, 1);
    pool.strides.insert(strides, 1);
    pool.pads.insert(pads, 0);
  }

  /// [N, C, spatial..] to [N, 1, spatial.., C].
  static std::vector<int64_t> oneChannel(std::span<const int64_t> shape) {
    std::vector<int64_t> one(shape.begin(), shape.end());
    one[1] = 1;
    one.push_back(shape[1]);
    return one;
  }

  /// Dense, with two spatial dimensions at least.
  static Image image(std::span<const int64_t> shape) {
    Image made;
    made.shape.assign(shape.begin(), shape.end());
    if (made.shape.size() == 3)
      made.shape.insert(made.shape.begin() + 2, 1);
    made.strides.resize(made.shape.size());
    int64_t step = 1;
    for (size_t i = made.shape.size(); i-- > 0;) {
      made.strides[i] = step;
      step *= made.shape[i];
    }
    return made;
  }

  const Pooling &wanted;
  Pool &pool;
  const size_t rank;
};

} // namespace

const char *describePool(const Pooling &wanted, Pool &pool) {
  pool = {};
  return PoolDescriber(wanted, pool).describe();
}

} // namespace partita::rules
