//===- AlgorithmCache.h - Algorithms that were chosen before ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A text file for each GPU model and version of the library, with a line for
// each problem. So a model computes with the same algorithms in every process.
//
//   $XDG_CACHE_HOME/partita/cublaslt-13.1.0-NVIDIA-H100-sm_90
//   f32 n m64 n8 k32 ...: 15 0 1f ...
//
// Nothing that is read is trusted: the library checks an algorithm before it is
// used, and one that it refuses is chosen again.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_CUBLASLT_ALGORITHMCACHE_H
#define PARTITA_RUNTIME_DEVICE_CUDA_CUBLASLT_ALGORITHMCACHE_H

#include "runtime/device/cuda/cublaslt/Types.h"

#include <map>
#include <optional>
#include <string>

namespace partita::runtime::cuda::cublaslt {

class AlgorithmCache {
public:
  /// Reads the file, if there is one. `folder` empty: there is none, and none
  /// is made. `name`: of the library and the GPU.
  AlgorithmCache(const std::string &folder, const std::string &name);

  std::optional<Algorithm> find(const std::string &problem) const;
  /// Remembers a choice. A file that cannot be written is no error.
  void add(const std::string &problem, const Algorithm &algorithm);

private:
  std::string path;
  std::map<std::string, Algorithm> known;
};

/// The folder of caches: PARTITA_CACHE (empty: none), or `partita` in
/// XDG_CACHE_HOME or in .cache of the user's home.
std::string cacheFolder();

} // namespace partita::runtime::cuda::cublaslt

#endif // PARTITA_RUNTIME_DEVICE_CUDA_CUBLASLT_ALGORITHMCACHE_H
