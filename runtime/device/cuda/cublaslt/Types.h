//===- Types.h - Types and constants of cuBLASLt ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What this program uses of NVIDIA's cublasLt.h, so that it builds without it.
// A test holds these declarations to that header, where it is installed.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_CUBLASLT_TYPES_H
#define PARTITA_RUNTIME_DEVICE_CUDA_CUBLASLT_TYPES_H

#include "runtime/device/cuda/driver/Types.h"

#include <cstddef>
#include <cstdint>

namespace partita::runtime::cuda::cublaslt {

/// cublasStatus_t.
enum class Result : int {
  success = 0,
  not_initialized = 1,
  alloc_failed = 3,
  invalid_value = 7,
  arch_mismatch = 8,
  execution_failed = 13,
  not_supported = 15,
};

/// cudaDataType_t.
enum class DataType : int { f32 = 0, f16 = 2, i8 = 3, i32 = 10, bf16 = 14 };

/// cublasComputeType_t.
enum class ComputeType : int { f32 = 68, i32 = 72 };

/// cublasOperation_t.
enum class Operation : int32_t { none = 0, transpose = 1 };

/// cublasLtEpilogue_t.
enum class Epilogue : uint32_t {
  none = 1,
  relu = 2,
  bias = 4,
  relu_bias = 6,
  gelu = 32,
  gelu_bias = 36,
};

/// cublasLtMatmulDescAttributes_t.
enum class ProductAttribute : int {
  transpose_a = 3,
  transpose_b = 4,
  epilogue = 7,
  bias_pointer = 8,
};

/// cublasLtMatrixLayoutAttribute_t.
enum class LayoutAttribute : int { batch_count = 5, batch_offset = 6 };

/// cublasLtMatmulPreferenceAttributes_t.
enum class PreferenceAttribute : int {
  max_workspace_bytes = 1,
  reduction_scheme_mask = 3,
  min_alignment_a_bytes = 5,
  min_alignment_b_bytes = 6,
  min_alignment_c_bytes = 7,
  min_alignment_d_bytes = 8,
};

/// CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE: parts of a sum are added in the type
/// that is computed with. The other schemes round parts to the result's type.
inline constexpr uint32_t kReduceInComputeType = 2;

/// cublasLtMatmulAlgo_t. It may be written to a file, and be used again with
/// the same version of the library.
struct Algorithm {
  uint64_t data[8] = {};
};

/// cublasLtMatmulHeuristicResult_t.
struct Choice {
  Algorithm algorithm;
  size_t workspace = 0;
  Result state = Result::success;
  float waves = 0;
  int reserved[4] = {};
};

using Handle = struct HandleObject *;         ///< cublasLtHandle_t
using ProductHandle = struct ProductObject *; ///< cublasLtMatmulDesc_t
using LayoutHandle = struct LayoutObject *;   ///< cublasLtMatrixLayout_t
using PreferenceHandle =
    struct PreferenceObject *; ///< cublasLtMatmulPreference_t

} // namespace partita::runtime::cuda::cublaslt

#endif // PARTITA_RUNTIME_DEVICE_CUDA_CUBLASLT_TYPES_H
