//===- Api.cpp - NCCL, loaded at run time ---------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/nccl/library/Api.h"

#include <cstdlib>
#include <dlfcn.h>

namespace partita::runtime::nccl {
namespace {

constexpr char kLibrary[] = "libnccl.so.2";

void *handle = nullptr;

Library open(Api &api) {
  // NCCL connects all GPUs of a communicator when it is made, unless the user
  // wants it otherwise: no step shall connect anything.
  (void)::setenv("NCCL_RUNTIME_CONNECT", "0", 0);
  handle = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (handle)
    return readLibrary(
        [](const char *symbol) { return ::dlsym(handle, symbol); }, api);
  const char *why = ::dlerror();
  Library library;
  library.is_missing = true;
  library.status = Status::error(std::string("there is no NCCL (") +
                                 (why ? why : kLibrary) + ")");
  return library;
}

} // namespace

std::string versionText(int version) {
  return "NCCL " + std::to_string(version / 10000) + "." +
         std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

Status Api::error(Result result, const std::string &what) const {
  const char *words = getErrorString(result);
  const char *more = getLastError(nullptr);
  std::string message = what + ": NCCL says '" +
                        (words ? words : "unknown error") + "' (" +
                        std::to_string(static_cast<int>(result)) + ")";
  if (more && *more)
    message += std::string(": ") + more;
  return Status::error(message);
}

Library readLibrary(void *(*find)(const char *symbol), Api &api) {
  Library library;
  std::string missing;
  auto look = [&](const char *symbol) {
    void *found = find(symbol);
    if (!found)
      missing = symbol;
    return found;
  };
#define PARTITA_NCCL(MEMBER, NAME, TYPES)                                      \
  api.MEMBER = reinterpret_cast<Result(*) TYPES>(look(#NAME));
#include "runtime/comm/nccl/library/Functions.def"
  api.getErrorString =
      reinterpret_cast<const char *(*)(Result)>(look("ncclGetErrorString"));
  api.getLastError =
      reinterpret_cast<const char *(*)(CommHandle)>(look("ncclGetLastError"));
  if (api.getVersion && api.getVersion(&api.version) != Result::success)
    api.version = 0;
  if (!missing.empty() || api.version < kOldestVersion) {
    library.status = Status::error(
        std::string(kLibrary) +
        (api.version ? " is " + versionText(api.version)
                     : std::string(" does not say its version")) +
        (missing.empty() ? "" : " and has no function " + missing) +
        "; this program needs " + versionText(kOldestVersion) +
        " or later: install a newer one");
    return library;
  }
  library.api = &api;
  return library;
}

const Library &loadLibrary() {
  static Api api;
  static const Library library = open(api);
  return library;
}

} // namespace partita::runtime::nccl
