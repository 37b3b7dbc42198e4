//===- CublasltHeaderTest.cpp - Our declarations against NVIDIA's ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <cstddef>
#include <cstdint>

#define GPUEMU_CUBLASLT_API
namespace ours {
#include "cublaslt/Cublaslt.h"
} // namespace ours

#include <cublasLt.h>

#include "test/unit/cuda/SameCall.h"

#include <gtest/gtest.h>

namespace {

#define GPUEMU_CUBLASLT(NAME, ...)                                             \
  static_assert(                                                               \
      partita::test::is_same_call<decltype(&ours::NAME), decltype(&::NAME)>,   \
      #NAME);
#include "cublaslt/Functions.def"
#undef GPUEMU_CUBLASLT

#define SAME_VALUE(NAME) static_assert(int(ours::NAME) == int(::NAME), #NAME)
SAME_VALUE(CUBLAS_STATUS_NOT_INITIALIZED);
SAME_VALUE(CUBLAS_STATUS_INVALID_VALUE);
SAME_VALUE(CUBLAS_STATUS_EXECUTION_FAILED);
SAME_VALUE(CUBLAS_STATUS_NOT_SUPPORTED);
SAME_VALUE(CUDA_R_32F);
SAME_VALUE(CUDA_R_16F);
SAME_VALUE(CUDA_R_16BF);
SAME_VALUE(CUDA_R_8I);
SAME_VALUE(CUDA_R_32I);
SAME_VALUE(CUBLAS_COMPUTE_32F);
SAME_VALUE(CUBLAS_COMPUTE_32I);
SAME_VALUE(CUBLAS_OP_T);
SAME_VALUE(CUBLASLT_MATMUL_DESC_TRANSA);
SAME_VALUE(CUBLASLT_MATMUL_DESC_TRANSB);
SAME_VALUE(CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME_VALUE(CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME_VALUE(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME_VALUE(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME_VALUE(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME_VALUE(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME_VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME_VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME_VALUE(CUBLASLT_EPILOGUE_DEFAULT);
SAME_VALUE(CUBLASLT_EPILOGUE_RELU_BIAS);
SAME_VALUE(CUBLASLT_EPILOGUE_GELU_BIAS);
static_assert(offsetof(ours::cublasLtMatmulHeuristicResult_t, state) ==
              offsetof(::cublasLtMatmulHeuristicResult_t, state));
static_assert(sizeof(ours::cublasLtMatmulHeuristicResult_t) ==
              sizeof(::cublasLtMatmulHeuristicResult_t));

TEST(CublasltHeaderTest, AgreesWithCublasLt) { SUCCEED(); }

} // namespace
