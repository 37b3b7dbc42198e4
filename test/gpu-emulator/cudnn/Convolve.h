//===- Convolve.h - A convolution on a device -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_CUDNN_CONVOLVE_H
#define PARTITA_TEST_GPUEMULATOR_CUDNN_CONVOLVE_H

#include "cudnn/Tensor.h"

namespace gpuemu::cudnn {

/// y = relu(conv(x, w) + addend + bias).
struct Convolution {
  Tensor x, w, y, addend, bias;
  bool hasAddend = false, hasBias = false, hasRelu = false;
  std::vector<int64_t> strides, dilations, pads;
};

struct ConvolutionJob {
  Convolution convolution;
  uint64_t x = 0, w = 0, y = 0, addend = 0, bias = 0;
  uint64_t workspace = 0, workspaceBytes = 0;
  bool roundsToTf32 = false, keepsNan = false;
};

/// Does the work on the emulator's memory. Returns what is wrong, or nothing.
std::string convolve(const ConvolutionJob &job);

} // namespace gpuemu::cudnn

#endif // PARTITA_TEST_GPUEMULATOR_CUDNN_CONVOLVE_H
