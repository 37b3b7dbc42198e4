//===- Api.h - The CUDA driver, loaded at run time --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program that can use GPUs starts on machines without a driver, too:
// `libcuda.so.1` is looked for when a plan needs it.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_DRIVER_API_H
#define PARTITA_RUNTIME_DEVICE_CUDA_DRIVER_API_H

#include "runtime/base/Status.h"
#include "runtime/device/cuda/driver/Types.h"

#include <string>

namespace partita::runtime::cuda {

/// The functions of the driver. Tests put others in their place.
struct Api {
#define PARTITA_CUDA(MEMBER, NAME, SYMBOL, TYPES)                              \
  Result(*MEMBER) TYPES = nullptr;
#include "runtime/device/cuda/driver/Functions.def"

  /// An error that says what was tried, and the driver's name and words for the
  /// result.
  Status error(Result result, const std::string &what) const;
  /// Success, or such an error.
  Status check(Result result, const char *what) const {
    return result == Result::success ? Status() : error(result, what);
  }
};

/// The oldest driver that this program works with, as cuDriverGetVersion says
/// it: CUDA 12.0.
inline constexpr int kOldestDriver = 12000;

/// Loads libcuda.so.1 and initialises it. It is loaded once, and never
/// unloaded. The error says whether there is no driver, one that is too old, or
/// no GPU.
Expected<const Api *> loadApi();

/// Whether the machine has a driver at all.
bool isInstalled();

/// Checks the version of a driver, and initialises it.
Status initialise(const Api &api);

/// A version in words, e.g. "CUDA 12.8".
std::string versionText(int version);

} // namespace partita::runtime::cuda

#endif // PARTITA_RUNTIME_DEVICE_CUDA_DRIVER_API_H
