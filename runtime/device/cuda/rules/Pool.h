//===- Pool.h - Pooling as cuDNN computes it --------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compiler asks which pools the library computes, and the device how it is
// to be called. Both get the answer here.
//
// The library's precompiled engine reads images whose channels are outermost;
// those of other images need a compiler at run time. It has no epilogue. An
// image of one or two dimensions whose channels lie innermost is, as it lies,
// one of a single channel with one dimension more:
//
//   x[N, C, H, W], strides of [N, H, W, C]     x[N, 1, H, W, C]
//   window [3, 3], strides [2, 2]              window [3, 3, 1], strides [2, 2,
//   1]
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_RULES_POOL_H
#define PARTITA_RUNTIME_DEVICE_CUDA_RULES_POOL_H

#include "runtime/device/cuda/rules/Tensor.h"

namespace partita::rules {

/// A call of kind `pool_max` or `pool_avg` (plan.fbs): x[N, C, spatial..],
/// result[N, C, spatial..].
struct Pooling {
  Tensor x, result;
  bool average = false, include_pad = false;
  std::span<const int64_t> window, strides, dilations, pads_low, pads_high;
  bool has_steps = false;
};

enum class PoolMode { max, average_with_pads, average };

struct Pool {
  abi::DType type;
  PoolMode mode;
  Image x, result;
  std::vector<int64_t> window, strides, pads;
};

/// Null if the library computes the pooling; `pool` is how. Else why it does
/// not, in words.
const char *describePool(const Pooling &wanted, Pool &pool);

} // namespace partita::rules

#endif // PARTITA_RUNTIME_DEVICE_CUDA_RULES_POOL_H
