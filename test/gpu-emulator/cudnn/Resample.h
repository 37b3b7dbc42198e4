//===- Resample.h - Pooling on a device -------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_CUDNN_RESAMPLE_H
#define PARTITA_TEST_GPUEMULATOR_CUDNN_RESAMPLE_H

#include "cudnn/Tensor.h"

namespace gpuemu::cudnn {

struct Resampling {
  Tensor x, y;
  cudnnResampleMode_t mode = CUDNN_RESAMPLE_MAXPOOL;
  bool propagatesNan = false;
  std::vector<int64_t> window, strides, pads;
};

struct ResamplingJob {
  Resampling resampling;
  uint64_t x = 0, y = 0;
};

/// Does the work on the emulator's memory. Returns what is wrong, or nothing.
std::string resample(const ResamplingJob &job);

} // namespace gpuemu::cudnn

#endif // PARTITA_TEST_GPUEMULATOR_CUDNN_RESAMPLE_H
