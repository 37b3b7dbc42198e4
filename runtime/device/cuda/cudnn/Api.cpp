//===- Api.cpp - cuDNN, loaded at run time --------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/cudnn/Api.h"

#include <dlfcn.h>
#include <mutex>

namespace partita::runtime::cuda::cudnn {
namespace {

constexpr char kAdvice[] =
    ": install cuDNN 9 for the driver's version of CUDA (LD_LIBRARY_PATH may "
    "name its folder), or compile the model with --no-library-calls";

std::string versionText(size_t version) {
  return std::to_string(version / 10000) + "." +
         std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

} // namespace

std::string Api::name() const { return "cuDNN " + versionText(getVersion()); }

Status Api::error(Result result, const std::string &what) const {
  const char *words = getErrorString(result);
  return Status::error(what + ": " + (words ? words : "an unknown error") +
                       " (" + std::to_string(static_cast<int>(result)) +
                       ") of " + name());
}

Expected<Api> openApi(const std::string &name) {
  void *library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = ::dlerror();
    return Status::error(
        "this plan has calls that cuDNN computes, and there is "
        "no " +
        name + " (" + (why ? why : "not found") + ")" + kAdvice);
  }
  Api api;
  std::string missing;
  auto find = [&](const char *symbol, auto *&function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        ::dlsym(library, symbol));
    if (!function && missing.empty())
      missing = symbol;
  };
#define PARTITA_CUDNN(MEMBER, NAME, TYPES) find(#NAME, api.MEMBER);
#include "runtime/device/cuda/cudnn/Functions.def"
  find("cudnnGetVersion", api.getVersion);
  find("cudnnGetErrorString", api.getErrorString);
  if (!missing.empty())
    return Status::error(name + " has no function " + missing + kAdvice);
  if (api.getVersion() < kOldestVersion)
    return Status::error(name + " is " + api.name() +
                         "; this program needs version " +
                         versionText(kOldestVersion) + " or later" + kAdvice);
  return api;
}

Expected<const Api *> loadApi() {
  static std::mutex mutex;
  static std::optional<Api> loaded;
  std::lock_guard<std::mutex> lock(mutex);
  if (!loaded)
    loaded = PARTITA_TRY(openApi("libcudnn.so.9"));
  return static_cast<const Api *>(&*loaded);
}

} // namespace partita::runtime::cuda::cudnn
