//===- Multiply.h - A product of matrices on a device -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_CUBLASLT_MULTIPLY_H
#define PARTITA_TEST_GPUEMULATOR_CUBLASLT_MULTIPLY_H

#include "cublaslt/Cublaslt.h"

#include <string>

namespace gpuemu::cublaslt {

/// Matrices with their columns one after another, `offset` elements from one of
/// a batch to the next.
struct Layout {
  cudaDataType_t type = CUDA_R_32F;
  uint64_t rows = 0, columns = 0;
  int64_t step = 0;
  int32_t batch = 1;
  int64_t offset = 0;
};

/// D = epilogue(alpha op(A) op(B) + beta C + bias).
struct Job {
  Layout a, b, c, d;
  bool transposeA = false, transposeB = false;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  double alpha = 1, beta = 0;
  uint64_t addressA = 0, addressB = 0, addressC = 0, addressD = 0, bias = 0;
  uint64_t workspace = 0, workspaceBytes = 0;
};

size_t bytesOf(cudaDataType_t type);

/// Does the work on the emulator's memory. Returns what is wrong, or nothing.
std::string multiply(const Job &job);

} // namespace gpuemu::cublaslt

#endif // PARTITA_TEST_GPUEMULATOR_CUBLASLT_MULTIPLY_H
