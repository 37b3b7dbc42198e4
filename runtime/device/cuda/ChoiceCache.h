//===- ChoiceCache.h - Algorithms that were chosen before -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A text file for each GPU model and version of a library, with a line for each
// problem. So a model computes with the same algorithms in every process, and
// libraries are asked once.
//
//   $XDG_CACHE_HOME/partita/cuBLASLt-13.1.0-NVIDIA-H100-sm_90
//   f32 n m64 n8 k32 ...: 15 0 1f ...
//
// The words are the library's. Nothing that is read is trusted: the library
// checks a choice before it is used, and one that it refuses is made again.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_CHOICECACHE_H
#define PARTITA_RUNTIME_DEVICE_CUDA_CHOICECACHE_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace partita::runtime::cuda {

class ChoiceCache {
public:
  using Choice = std::vector<uint64_t>;

  /// Reads the file, if there is one. `folder` empty: there is none, and none
  /// is made. `name`: of the library and the GPU.
  ChoiceCache(const std::string &folder, const std::string &name);

  std::optional<Choice> find(const std::string &problem) const;
  /// Remembers a choice. A file that cannot be written is no error. `problem`
  /// is one line without ": ".
  void add(const std::string &problem, const Choice &choice);

private:
  std::string path;
  std::map<std::string, Choice> known;
};

/// The folder of caches: PARTITA_CACHE (empty: none), or `partita` in
/// XDG_CACHE_HOME or in .cache of the user's home.
std::string cacheFolder();

} // namespace partita::runtime::cuda

#endif // PARTITA_RUNTIME_DEVICE_CUDA_CHOICECACHE_H
