//===- Api.h - cuDNN, loaded at run time ------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_API_H
#define PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_API_H

#include "runtime/base/Status.h"
#include "runtime/device/cuda/cudnn/Types.h"

#include <string>

namespace partita::runtime::cuda::cudnn {

/// The functions of the library. Tests put others in their place.
struct Api {
#define PARTITA_CUDNN(MEMBER, NAME, TYPES) Result(*MEMBER) TYPES = nullptr;
#include "runtime/device/cuda/cudnn/Functions.def"
  size_t (*getVersion)() = nullptr;
  const char *(*getErrorString)(Result) = nullptr;

  /// "cuDNN 9.19.0"
  std::string name() const;

  /// An error that says what was tried, and the library's words for the result.
  Status error(Result result, const std::string &what) const;
};

/// The oldest version that this program works with, as cudnnGetVersion says it:
/// 9.0.0.
inline constexpr size_t kOldestVersion = 90000;

/// Opens the library of that name. The error says what is wrong.
Expected<Api> openApi(const std::string &name);

/// Loads libcudnn.so.9. It is loaded once, and never unloaded.
Expected<const Api *> loadApi();

} // namespace partita::runtime::cuda::cudnn

#endif // PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_API_H
