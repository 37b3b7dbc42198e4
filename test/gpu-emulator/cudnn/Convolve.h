//===- Convolve.h - A convolution on a device -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_CUDNN_CONVOLVE_H
#define PARTITA_TEST_GPUEMULATOR_CUDNN_CONVOLVE_H

#include "cudnn/Cudnn.h"

#include <string>
#include <vector>

namespace gpuemu::cudnn {

/// Dimensions and strides in elements, [N, C, spatial..].
struct Tensor {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<int64_t> shape, strides;
  int64_t id = 0, alignment = 0;
  bool isVirtual = false;

  int64_t count() const;
  size_t bytes() const;
  /// Whether the elements lie without gaps, in some order.
  bool isPacked() const;
};

/// y = relu(conv(x, w) + addend + bias).
struct Convolution {
  Tensor x, w, y, addend, bias;
  bool hasAddend = false, hasBias = false, hasRelu = false;
  std::vector<int64_t> strides, dilations, pads;
};

struct Job {
  Convolution convolution;
  uint64_t x = 0, w = 0, y = 0, addend = 0, bias = 0;
  uint64_t workspace = 0, workspaceBytes = 0;
  bool roundsToTf32 = false, keepsNan = false;
};

/// Does the work on the emulator's memory. Returns what is wrong, or nothing.
std::string convolve(const Job &job);

} // namespace gpuemu::cudnn

#endif // PARTITA_TEST_GPUEMULATOR_CUDNN_CONVOLVE_H
