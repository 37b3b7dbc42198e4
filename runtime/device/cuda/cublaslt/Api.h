//===- Api.h - cuBLASLt, loaded at run time ---------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_CUBLASLT_API_H
#define PARTITA_RUNTIME_DEVICE_CUDA_CUBLASLT_API_H

#include "runtime/base/Status.h"
#include "runtime/device/cuda/cublaslt/Types.h"

#include <string>
#include <vector>

namespace partita::runtime::cuda::cublaslt {

/// The functions of the library. Tests put others in their place.
struct Api {
#define PARTITA_CUBLASLT(MEMBER, NAME, TYPES) Result(*MEMBER) TYPES = nullptr;
#include "runtime/device/cuda/cublaslt/Functions.def"
  size_t (*getVersion)() = nullptr;
  const char *(*getStatusName)(Result) = nullptr;

  /// "cuBLASLt 13.1.0"
  std::string name() const;

  /// An error that says what was tried, and the library's name for the result.
  Status error(Result result, const std::string &what) const;
};

/// The oldest version that this program works with, as cublasLtGetVersion says
/// it: 12.0.0.
inline constexpr size_t kOldestVersion = 120000;

/// The files of versions that work with a driver (cuDriverGetVersion), the
/// newest first.
std::vector<std::string> libraryNames(int driver_version);

/// Opens the first of the files that there is. The error says which were looked
/// for, or what is wrong with the one that was found.
Expected<Api> openApi(const std::vector<std::string> &names);

/// Loads the library for a driver. It is loaded once, and never unloaded.
Expected<const Api *> loadApi(int driver_version);

} // namespace partita::runtime::cuda::cublaslt

#endif // PARTITA_RUNTIME_DEVICE_CUDA_CUBLASLT_API_H
