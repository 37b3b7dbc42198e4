//===- HeaderTest.cpp - Our declarations against NVIDIA's cuda.h ----- -*- C++
//-*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Compiles where they agree: the same number of parameters, of the same kinds,
// and structures of the same layout.

#include <cstddef>
#include <cstdint>

// Not the same functions as NVIDIA's.
#define GPUEMU_API
namespace ours {
#include "driver/Cuda.h"
} // namespace ours

#include <cuda.h>

#include <gtest/gtest.h>

#include <type_traits>

namespace {

#if CUDA_VERSION >= 13000

/// What a type is to the caller: pointers are one kind, numbers and structures
/// are told apart by size.
template <typename T>
constexpr int kindOf = std::is_pointer_v<T>          ? -1
                       : std::is_void_v<T>           ? -2
                       : std::is_floating_point_v<T> ? -3
                                                     : int(sizeof(T));
template <typename A, typename B> constexpr bool agree = kindOf<A> == kindOf<B>;
template <typename... A, typename... B>
constexpr bool functionsAgree(ours::CUresult (*)(A...), ::CUresult (*)(B...)) {
  if constexpr (sizeof...(A) == sizeof...(B))
    return (agree<A, B> && ...);
  else
    return false;
}

#define GPUEMU_FUNCTION(NAME, ...)                                             \
  static_assert(functionsAgree(&ours::NAME, &::NAME), #NAME);
#include "driver/Functions.def"
#undef GPUEMU_FUNCTION

#define SAME_VALUE(NAME) static_assert(int(ours::NAME) == int(::NAME), #NAME)
SAME_VALUE(CUDA_ERROR_OUT_OF_MEMORY);
SAME_VALUE(CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME_VALUE(CUDA_ERROR_INVALID_PTX);
SAME_VALUE(CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME_VALUE(CUDA_ERROR_INVALID_HANDLE);
SAME_VALUE(CUDA_ERROR_NOT_FOUND);
SAME_VALUE(CUDA_ERROR_NOT_READY);
SAME_VALUE(CUDA_ERROR_ILLEGAL_ADDRESS);
SAME_VALUE(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
SAME_VALUE(CUDA_ERROR_LAUNCH_TIMEOUT);
SAME_VALUE(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
SAME_VALUE(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
SAME_VALUE(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
SAME_VALUE(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
SAME_VALUE(CUDA_ERROR_ILLEGAL_INSTRUCTION);
SAME_VALUE(CUDA_ERROR_MISALIGNED_ADDRESS);
SAME_VALUE(CUDA_ERROR_LAUNCH_FAILED);
SAME_VALUE(CUDA_ERROR_NOT_SUPPORTED);
SAME_VALUE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME_VALUE(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
SAME_VALUE(CUDA_ERROR_STREAM_CAPTURE_MERGE);
SAME_VALUE(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
SAME_VALUE(CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
SAME_VALUE(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
SAME_VALUE(CUDA_ERROR_CAPTURED_EVENT);
SAME_VALUE(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
SAME_VALUE(CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME_VALUE(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME_VALUE(CU_JIT_ERROR_LOG_BUFFER);
SAME_VALUE(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME_VALUE(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME_VALUE(CU_POINTER_ATTRIBUTE_RANGE_SIZE);
SAME_VALUE(CU_MEMORYTYPE_UNIFIED);
SAME_VALUE(CU_STREAM_CAPTURE_MODE_RELAXED);
SAME_VALUE(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME_VALUE(CU_LAUNCH_ATTRIBUTE_PRIORITY);

#define SAME_FIELD(STRUCT, FIELD)                                              \
  static_assert(offsetof(ours::STRUCT, FIELD) == offsetof(::STRUCT, FIELD))
static_assert(sizeof(ours::CUDA_MEMCPY2D) == sizeof(::CUDA_MEMCPY2D));
SAME_FIELD(CUDA_MEMCPY2D, srcDevice);
SAME_FIELD(CUDA_MEMCPY2D, dstDevice);
SAME_FIELD(CUDA_MEMCPY2D, Height);
static_assert(sizeof(ours::CUDA_MEMCPY3D) == sizeof(::CUDA_MEMCPY3D));
SAME_FIELD(CUDA_MEMCPY3D, srcHeight);
SAME_FIELD(CUDA_MEMCPY3D, dstDevice);
SAME_FIELD(CUDA_MEMCPY3D, Depth);
static_assert(sizeof(ours::CUlaunchConfig) == sizeof(::CUlaunchConfig));
SAME_FIELD(CUlaunchConfig, hStream);
SAME_FIELD(CUlaunchConfig, numAttrs);
static_assert(sizeof(ours::CUlaunchAttribute) == sizeof(::CUlaunchAttribute));
static_assert(sizeof(ours::CUuuid) == sizeof(::CUuuid));

TEST(HeaderTest, AgreesWithTheToolkit) { SUCCEED(); }

#else

TEST(HeaderTest, AgreesWithTheToolkit) {
  GTEST_SKIP() << "cuda.h is older than that of CUDA 13";
}

#endif

} // namespace
