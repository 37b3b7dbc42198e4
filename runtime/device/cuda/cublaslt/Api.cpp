//===- Api.cpp - cuBLASLt, loaded at run time -----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/cublaslt/Api.h"

#include <dlfcn.h>
#include <mutex>

namespace partita::runtime::cuda::cublaslt {
namespace {

constexpr char kAdvice[] =
    " (it is part of the CUDA toolkit; LD_LIBRARY_PATH may name its folder), "
    "or compile the model with --no-library-calls";

std::string versionText(size_t version) {
  return std::to_string(version / 10000) + "." +
         std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

template <typename Function>
void find(void *library, const char *name, Function *&function,
          std::string &missing) {
  function = reinterpret_cast<Function *>(::dlsym(library, name));
  if (!function && missing.empty())
    missing = name;
}

} // namespace

std::string Api::name() const {
  return "cuBLASLt " + versionText(getVersion());
}

Status Api::error(Result result, const std::string &what) const {
  const char *name = getStatusName(result);
  return Status::error(what + ": " + (name ? name : "an unknown error") + " (" +
                       std::to_string(static_cast<int>(result)) + ") of " +
                       this->name());
}

std::vector<std::string> libraryNames(int driver_version) {
  // A library works with drivers of its own major version and later ones.
  std::vector<std::string> names;
  for (int major : {13, 12})
    if (driver_version / 1000 >= major)
      names.push_back("libcublasLt.so." + std::to_string(major));
  return names;
}

Expected<Api> openApi(const std::vector<std::string> &names) {
  void *library = nullptr;
  std::string name, tried;
  for (const std::string &each : names) {
    tried += (tried.empty() ? "" : " or ") + each;
    if (library)
      continue;
    name = each;
    library = ::dlopen(each.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (!library) {
    const char *why = ::dlerror();
    return Status::error("this plan has matrix products that cuBLASLt "
                         "computes, and there is no " +
                         tried + " (" + (why ? why : "not found") +
                         "): install cuBLAS" + kAdvice);
  }
  Api api;
  std::string missing;
#define PARTITA_CUBLASLT(MEMBER, NAME, TYPES)                                  \
  find(library, #NAME, api.MEMBER, missing);
#include "runtime/device/cuda/cublaslt/Functions.def"
  find(library, "cublasLtGetVersion", api.getVersion, missing);
  find(library, "cublasLtGetStatusName", api.getStatusName, missing);
  if (!missing.empty())
    return Status::error(name + " has no function " + missing +
                         ": install cuBLAS 12 or 13" + kAdvice);
  if (api.getVersion() < kOldestVersion)
    return Status::error(name + " is " + api.name() +
                         "; this program needs version " +
                         versionText(kOldestVersion) +
                         " or later: install cuBLAS 12 or 13" + kAdvice);
  return api;
}

Expected<const Api *> loadApi(int driver_version) {
  static std::mutex mutex;
  static std::optional<Api> loaded;
  std::lock_guard<std::mutex> lock(mutex);
  if (!loaded)
    loaded = PARTITA_TRY(openApi(libraryNames(driver_version)));
  return static_cast<const Api *>(&*loaded);
}

} // namespace partita::runtime::cuda::cublaslt
