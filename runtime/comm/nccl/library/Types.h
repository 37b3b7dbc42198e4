//===- Types.h - Types and constants of NCCL --------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What this program uses of NVIDIA's nccl.h, so that it builds without it. A
// test holds these declarations to nccl.h, where that is installed.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_NCCL_LIBRARY_TYPES_H
#define PARTITA_RUNTIME_COMM_NCCL_LIBRARY_TYPES_H

#include "runtime/device/cuda/driver/Types.h"

#include <climits>
#include <cstddef>

namespace partita::runtime::nccl {

using CommHandle = struct CommObject *;  ///< ncclComm_t
using StreamHandle = cuda::StreamHandle; ///< cudaStream_t is a CUstream

/// ncclUniqueId: names a communicator while its ranks join it.
struct UniqueId {
  char internal[128] = {};
};

/// ncclResult_t.
enum class Result : int {
  success = 0,
  unhandled_cuda_error = 1,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7,
};

/// Whether a call works, or goes on working by itself.
inline bool works(Result result) {
  return result == Result::success || result == Result::in_progress;
}

/// ncclDataType_t.
enum class DataType : int {
  int8 = 0,
  uint8 = 1,
  int32 = 2,
  uint32 = 3,
  int64 = 4,
  uint64 = 5,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  bfloat16 = 9,
};

/// ncclRedOp_t.
enum class ReduceOp : int { sum = 0, prod = 1, max = 2, min = 3 };

inline constexpr int kUndefined = INT_MIN; // NCCL_CONFIG_UNDEF_INT
inline constexpr int kNoColor = -1;        // NCCL_SPLIT_NOCOLOR

/// NCCL's code of a version: from 2.9 on, major * 10000 + minor * 100 + patch.
inline constexpr int versionCode(int major, int minor, int patch) {
  return major * 10000 + minor * 100 + patch;
}
/// The oldest version with all functions that are used: 2.18 has ncclCommSplit.
inline constexpr int kOldestVersion = versionCode(2, 18, 0);
/// From this version on, a group may abort communicators together.
inline constexpr int kGroupsAbort = versionCode(2, 22, 0);

/// ncclConfig_t as it was in the oldest version. It says its size and version,
/// so later ones read it, too.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = kOldestVersion;
  int blocking = kUndefined;
  int cga_cluster_size = kUndefined;
  int min_ctas = kUndefined;
  int max_ctas = kUndefined;
  const char *net_name = nullptr;
  int split_share = kUndefined;
};

} // namespace partita::runtime::nccl

#endif // PARTITA_RUNTIME_COMM_NCCL_LIBRARY_TYPES_H
