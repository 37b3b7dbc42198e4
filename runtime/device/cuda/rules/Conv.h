//===- Conv.h - Convolutions as cuDNN computes them -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compiler asks which convolutions the library computes, and the device how
// it is to be called. Both get the answer here.
//
//   y = relu(conv(x, w) + addend + bias)
//
// Without a bias it has neither addend nor ReLU: so are the patterns of its
// precompiled engines.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_RULES_CONV_H
#define PARTITA_RUNTIME_DEVICE_CUDA_RULES_CONV_H

#include "runtime/device/cuda/rules/Tensor.h"

namespace partita::rules {

/// A call of kind `conv` (plan.fbs): x[N, C, spatial..], weights[O, C / groups,
/// spatial..], result[N, O, spatial..].
struct Convolution {
  Tensor x, weights, result;
  std::span<const int64_t> strides, dilations, pads_low, pads_high;
  int64_t groups = 1;
  std::vector<PostOp> post_ops;
};

struct Conv {
  abi::DType type;
  Image x, weights, result; ///< the addend lies as the result
  std::vector<int64_t> strides, dilations, pads;
  int64_t groups = 1;
  int addend = -1, bias = -1; ///< numbers of post-ops; -1: none
  bool relu = false;
};

/// Null if the library computes the convolution; `conv` is how. Else why it
/// does not, in words.
const char *describeConv(const Convolution &wanted, Conv &conv);

} // namespace partita::rules

#endif // PARTITA_RUNTIME_DEVICE_CUDA_RULES_CONV_H
