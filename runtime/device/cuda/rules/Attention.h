//===- Attention.h - Attention as cuDNN computes it -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compiler asks which attention the library computes, and the device how it
// is to be called. Both get the answer here.
//
// The library compiles each of its engines for attention when a plan is loaded,
// by NVRTC. It has them for f16 and bf16. Beside the result they write
// statistics, a number of f32 for each row, which nobody reads: engines without
// them exist for few sizes.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_RULES_ATTENTION_H
#define PARTITA_RUNTIME_DEVICE_CUDA_RULES_ATTENTION_H

#include "runtime/device/cuda/rules/Tensor.h"

namespace partita::rules {

/// The numbers of a head's row, of q and k or of v: a multiple of 8.
inline constexpr int64_t kHeadStep = 8, kLongestHead = 512;
inline bool isHeadSize(int64_t size) {
  return size > 0 && size <= kLongestHead && size % kHeadStep == 0;
}

/// The most bytes of statistics, in the workspace of a plan.
inline constexpr int64_t kMostStatistics = kGpuWorkspace / 2;

/// A call of kind `attention` (plan.fbs): q[B, H, M, D], k[B, H, L, D],
/// v[B, H, L, E], result[B, H, M, E]; a mask has the shape [B, H, M, L].
struct Attending {
  Tensor q, k, v, result;
  std::optional<Tensor> mask_mul, mask_add;
  bool has_steps = false;
};

struct Attention {
  abi::DType type;
  Image q, k, v, result; ///< k as [B, H, D, L]
  std::optional<Image> mask;
  Image statistics; ///< [B, H, M, 1], of f32, dense
  size_t statisticsBytes() const;
};

/// Null if the library computes the attention; `attention` is how. Else why it
/// does not, in words.
const char *describeAttention(const Attending &wanted, Attention &attention);

} // namespace partita::rules

#endif // PARTITA_RUNTIME_DEVICE_CUDA_RULES_ATTENTION_H
