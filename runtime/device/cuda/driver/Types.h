//===- Types.h - Types and constants of the CUDA driver API -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What this program uses of NVIDIA's cuda.h, so that it builds without it. A
// test holds these declarations to cuda.h, where that is installed.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_DRIVER_TYPES_H
#define PARTITA_RUNTIME_DEVICE_CUDA_DRIVER_TYPES_H

#include <cstddef>

namespace partita::runtime::cuda {

/// CUresult.
enum class Result : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  no_device = 100,
  peer_access_unsupported = 217,
  unsupported_ptx_version = 222,
  not_found = 500,
  not_ready = 600,
  peer_access_already_enabled = 704,
  too_many_peers = 711,
  launch_failed = 719,
  // What a capture does not allow has the results from here ...
  stream_capture_unsupported = 900,
  stream_capture_invalidated = 901,
  stream_capture_wrong_thread = 908, // ... to here.
};

using Ordinal = int;                      ///< CUdevice
using DeviceAddress = unsigned long long; ///< CUdeviceptr
using ContextHandle = struct ContextObject *;
using ModuleHandle = struct ModuleObject *;
using FunctionHandle = struct FunctionObject *;
using StreamHandle = struct StreamObject *;
using EventHandle = struct EventObject *;
using GraphHandle = struct GraphObject *;         ///< CUgraph
using GraphExecHandle = struct GraphExecObject *; ///< CUgraphExec
using HostFunction = void (*)(void *);

/// CUuuid: of a GPU, or of a part of one (MIG).
struct Uuid {
  char bytes[16] = {};
};

/// CUdevice_attribute.
enum class DeviceAttribute : int {
  max_pitch = 11,
  clock_rate = 13, ///< kHz
  multiprocessor_count = 16,
  compute_capability_major = 75,
  compute_capability_minor = 76,
  max_shared_memory_per_block_optin = 97,
  can_use_64_bit_stream_mem_ops = 122,
};

/// CUfunction_attribute.
enum class FunctionAttribute : int {
  max_threads_per_block = 0,
  shared_size_bytes = 1,
  max_dynamic_shared_size_bytes = 8,
};

/// CUjit_option.
enum class JitOption : int {
  error_log_buffer = 5,
  error_log_buffer_size_bytes = 6,
};

/// CUstreamCaptureMode: CU_STREAM_CAPTURE_MODE_THREAD_LOCAL.
enum class CaptureMode : int { of_thread = 1 };

/// CUmemorytype.
enum class MemoryType : int { host = 1, device = 2 };

/// CUDA_MEMCPY2D.
struct Copy2D {
  size_t source_x = 0, source_y = 0;
  MemoryType source_type = MemoryType::device;
  const void *source_host = nullptr;
  DeviceAddress source_device = 0;
  void *source_array = nullptr;
  size_t source_pitch = 0;
  size_t target_x = 0, target_y = 0;
  MemoryType target_type = MemoryType::device;
  void *target_host = nullptr;
  DeviceAddress target_device = 0;
  void *target_array = nullptr;
  size_t target_pitch = 0;
  size_t width = 0, height = 0;
};

inline constexpr unsigned kStreamNonBlocking = 1;  // CU_STREAM_NON_BLOCKING
inline constexpr unsigned kEventDisableTiming = 2; // CU_EVENT_DISABLE_TIMING
inline constexpr unsigned kHostAllocPortable = 1;  // CU_MEMHOSTALLOC_PORTABLE

} // namespace partita::runtime::cuda

#endif // PARTITA_RUNTIME_DEVICE_CUDA_DRIVER_TYPES_H
