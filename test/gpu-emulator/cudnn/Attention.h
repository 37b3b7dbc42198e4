//===- Attention.h - Attention on a device ----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_CUDNN_ATTENTION_H
#define PARTITA_TEST_GPUEMULATOR_CUDNN_ATTENTION_H

#include "cudnn/Tensor.h"

namespace gpuemu::cudnn {

/// scores = q * k * scale + mask; result = softmax(scores) * v.
struct Attention {
  Tensor q;          ///< [B, H, M, D]
  Tensor k;          ///< [B, H, D, L]
  Tensor scale;      ///< one number of the host's
  Tensor mask;       ///< [B or 1, H or 1, M or 1, L]
  Tensor v;          ///< [B, H, L, E]
  Tensor result;     ///< [B, H, M, E]
  Tensor statistics; ///< [B, H, M, 1]: maximum + log(sum of exponentials)
  bool hasMask = false;
};

struct AttentionJob {
  Attention attention;
  uint64_t q = 0, k = 0, mask = 0, v = 0, result = 0, statistics = 0;
  uint64_t workspace = 0, workspaceBytes = 0;
  float scale = 0;
};

/// Does the work on the emulator's memory. Returns what is wrong, or nothing.
std::string attend(const AttentionJob &job);

} // namespace gpuemu::cudnn

#endif // PARTITA_TEST_GPUEMULATOR_CUDNN_ATTENTION_H
