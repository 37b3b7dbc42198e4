//===- HeaderTest.cpp - Our declarations are NVIDIA's ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/driver/Api.h"
#include "test/unit/cuda/SameCall.h"

#include <gtest/gtest.h>

#if __has_include(<cuda.h>)
#include <cuda.h>

#include <cstddef>
#include <string>
#include <type_traits>

namespace partita::test {
namespace {

using namespace runtime::cuda;

#define TEXT_OF(NAME) #NAME
#define TEXT(NAME) TEXT_OF(NAME)

TEST(CudaHeader, FunctionsAreDeclaredAlike) {
#define PARTITA_CUDA(MEMBER, NAME, SYMBOL, TYPES)                              \
  static_assert(is_same_call<decltype(Api::MEMBER), decltype(&NAME)>, SYMBOL); \
  /* An older version of a function keeps its name beside newer ones. */       \
  EXPECT_TRUE(std::string(SYMBOL) == TEXT(NAME) ||                             \
              std::string(SYMBOL) + "_v2" == TEXT(NAME))                       \
      << SYMBOL << ", " << TEXT(NAME);
#include "runtime/device/cuda/driver/Functions.def"
}

TEST(CudaHeader, ConstantsAreTheSame) {
#define SAME(OURS, THEIRS)                                                     \
  EXPECT_EQ(static_cast<long>(OURS), static_cast<long>(THEIRS)) << #THEIRS
  SAME(Result::success, CUDA_SUCCESS);
  SAME(Result::invalid_value, CUDA_ERROR_INVALID_VALUE);
  SAME(Result::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
  SAME(Result::no_device, CUDA_ERROR_NO_DEVICE);
  SAME(Result::unsupported_ptx_version, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  SAME(Result::peer_access_unsupported, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  SAME(Result::peer_access_already_enabled,
       CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  SAME(Result::too_many_peers, CUDA_ERROR_TOO_MANY_PEERS);
  SAME(Result::not_found, CUDA_ERROR_NOT_FOUND);
  SAME(Result::not_ready, CUDA_ERROR_NOT_READY);
  SAME(Result::launch_failed, CUDA_ERROR_LAUNCH_FAILED);
  SAME(Result::stream_capture_unsupported,
       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  SAME(Result::stream_capture_invalidated,
       CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  SAME(Result::stream_capture_wrong_thread,
       CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  SAME(CaptureMode::of_thread, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  SAME(DeviceAttribute::max_pitch, CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  SAME(DeviceAttribute::clock_rate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  SAME(DeviceAttribute::multiprocessor_count,
       CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  SAME(DeviceAttribute::compute_capability_major,
       CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  SAME(DeviceAttribute::compute_capability_minor,
       CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  SAME(DeviceAttribute::max_shared_memory_per_block_optin,
       CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  SAME(DeviceAttribute::can_use_64_bit_stream_mem_ops,
       CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
  SAME(FunctionAttribute::max_threads_per_block,
       CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  SAME(FunctionAttribute::shared_size_bytes,
       CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  SAME(FunctionAttribute::max_dynamic_shared_size_bytes,
       CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  SAME(JitOption::error_log_buffer, CU_JIT_ERROR_LOG_BUFFER);
  SAME(JitOption::error_log_buffer_size_bytes,
       CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
  SAME(MemoryType::host, CU_MEMORYTYPE_HOST);
  SAME(MemoryType::device, CU_MEMORYTYPE_DEVICE);
  SAME(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
  SAME(kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
  SAME(kHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE);
#undef SAME
}

TEST(CudaHeader, StructuresAreTheSame) {
  EXPECT_EQ(sizeof(Uuid), sizeof(CUuuid));
  EXPECT_EQ(sizeof(Copy2D), sizeof(CUDA_MEMCPY2D));
#define SAME(OURS, THEIRS)                                                     \
  EXPECT_EQ(offsetof(Copy2D, OURS), offsetof(CUDA_MEMCPY2D, THEIRS)) << #THEIRS
  SAME(source_x, srcXInBytes);
  SAME(source_y, srcY);
  SAME(source_type, srcMemoryType);
  SAME(source_host, srcHost);
  SAME(source_device, srcDevice);
  SAME(source_array, srcArray);
  SAME(source_pitch, srcPitch);
  SAME(target_x, dstXInBytes);
  SAME(target_y, dstY);
  SAME(target_type, dstMemoryType);
  SAME(target_host, dstHost);
  SAME(target_device, dstDevice);
  SAME(target_array, dstArray);
  SAME(target_pitch, dstPitch);
  SAME(width, WidthInBytes);
  SAME(height, Height);
#undef SAME
}

} // namespace
} // namespace partita::test

#else

TEST(CudaHeader, IsInstalled) {
  GTEST_SKIP() << "no cuda.h of NVIDIA's is installed";
}

#endif
