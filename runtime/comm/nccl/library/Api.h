//===- Api.h - NCCL, loaded at run time -------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `libnccl.so.2` is looked for when devices of a plan could use it. Without it
// they exchange their bytes through the host.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_NCCL_LIBRARY_API_H
#define PARTITA_RUNTIME_COMM_NCCL_LIBRARY_API_H

#include "runtime/base/Status.h"
#include "runtime/comm/nccl/library/Types.h"

#include <string>

namespace partita::runtime::nccl {

/// The functions of NCCL. Tests put others in their place.
struct Api {
#define PARTITA_NCCL(MEMBER, NAME, TYPES) Result(*MEMBER) TYPES = nullptr;
#include "runtime/comm/nccl/library/Functions.def"
  const char *(*getErrorString)(Result) = nullptr;
  const char *(*getLastError)(CommHandle) = nullptr;

  int version = 0; ///< as ncclGetVersion says it

  /// An error that says what was tried, and NCCL's words for the result.
  Status error(Result result, const std::string &what) const;
};

/// NCCL, or why there is none.
struct Library {
  const Api *api = nullptr; ///< null: see `status`
  /// Whether there is no such library at all. Otherwise an error is of one that
  /// cannot be used.
  bool is_missing = false;
  Status status;
};

/// Loads libnccl.so.2. It is loaded once, and never unloaded.
const Library &loadLibrary();

/// Looks for the functions and the version in a library that was opened.
Library readLibrary(void *(*find)(const char *symbol), Api &api);

/// "NCCL 2.28.9"
std::string versionText(int version);

} // namespace partita::runtime::nccl

#endif // PARTITA_RUNTIME_COMM_NCCL_LIBRARY_API_H
