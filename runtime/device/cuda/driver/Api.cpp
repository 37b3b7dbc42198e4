//===- Api.cpp - The CUDA driver, loaded at run time ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/driver/Api.h"

#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

namespace partita::runtime::cuda {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";
constexpr char kOtherTarget[] = ", or compile the model for another --target";

void *findSymbol(void *library, const std::string &symbol) {
  void *found = ::dlsym(library, symbol.c_str());
  // The same function under the name that newer headers give it.
  return found ? found : ::dlsym(library, (symbol + "_v2").c_str());
}

Expected<Api> open() {
  void *library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = ::dlerror();
    return Status::error(
        std::string("this machine has no driver for NVIDIA's GPUs (") +
        (why ? why : kLibrary) + "): install it" + kOtherTarget);
  }
  Api api;
  std::string missing;
#define PARTITA_CUDA(MEMBER, NAME, SYMBOL, TYPES)                              \
  if (void *found = findSymbol(library, SYMBOL))                               \
    api.MEMBER = reinterpret_cast<Result(*) TYPES>(found);                     \
  else                                                                         \
    missing = SYMBOL;
#include "runtime/device/cuda/driver/Functions.def"
  if (missing.empty())
    return api;
  int version = 0;
  if (api.driverGetVersion && api.driverGetVersion(&version) == Result::success)
    return Status::error("the driver for NVIDIA's GPUs is of " +
                         versionText(version) + " and has no function " +
                         missing + "; this program needs " +
                         versionText(kOldestDriver) +
                         " or later: install a newer driver" + kOtherTarget);
  return Status::error(std::string(kLibrary) + " has no function " + missing +
                       ": install the driver for NVIDIA's GPUs again" +
                       kOtherTarget);
}

} // namespace

std::string versionText(int version) {
  return "CUDA " + std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

Status Api::error(Result result, const std::string &what) const {
  const char *name = nullptr, *words = nullptr;
  if (getErrorName(result, &name) != Result::success || !name)
    name = "an unknown error";
  std::string message = what + ": " + name + " (" +
                        std::to_string(static_cast<int>(result)) + ")";
  if (getErrorString(result, &words) == Result::success && words)
    message += std::string(": ") + words;
  return Status::error(message);
}

bool isInstalled() {
  return ::dlopen(kLibrary, RTLD_LAZY | RTLD_LOCAL) != nullptr;
}

Status initialise(const Api &api) {
  int version = 0;
  PARTITA_TRY(api.check(api.driverGetVersion(&version),
                        "cannot read the version of the driver for "
                        "NVIDIA's GPUs"));
  if (version < kOldestDriver)
    return Status::error("the driver for NVIDIA's GPUs is of " +
                         versionText(version) + "; this program needs " +
                         versionText(kOldestDriver) +
                         " or later: install a newer driver" + kOtherTarget);
  // A GPU takes work from 8 queues unless it is told otherwise, and streams of
  // one queue wait for each other. A device has more than 8, one of which may
  // wait for a message that another GPU sends only when it got ours.
  (void)::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  int count = 0;
  Result result = api.init(0);
  if (result == Result::success)
    result = api.deviceGetCount(&count);
  if (result == Result::no_device || (result == Result::success && count == 0))
    return Status::error(
        std::string("this machine has a driver for NVIDIA's GPUs, but no GPU "
                    "that it may use: see nvidia-smi and "
                    "CUDA_VISIBLE_DEVICES") +
        kOtherTarget);
  return api.check(result, "cannot initialise the driver for NVIDIA's GPUs");
}

Expected<const Api *> loadApi() {
  static std::mutex mutex;
  static const Api *loaded = nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  if (loaded)
    return loaded;
  static const Expected<Api> opened = open();
  if (!opened)
    return opened.status();
  PARTITA_TRY(initialise(*opened));
  loaded = &*opened;
  return loaded;
}

} // namespace partita::runtime::cuda
