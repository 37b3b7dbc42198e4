//===- ProvokeCrash.cpp - Crashes on purpose, for tests -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/crash/Place.h"

#include "llvm/Support/ErrorHandling.h"

#include <cassert>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace partita::crash {
namespace {

struct Wanted {
  llvm::StringRef kind, name;
  Wanted() {
    if (const char *text = std::getenv("PARTITA_CRASH"))
      std::tie(kind, name) = llvm::StringRef(text).split('@');
  }
};

/// Uses up the stack; the volatile array keeps the calls from becoming a loop.
int recurse(int depth) {
  volatile char room[4096];
  room[depth % 4096] = 1;
  return depth < 0 ? 0 : recurse(depth + 1) + room[(depth + 1) % 4096];
}

void crash(llvm::StringRef kind) {
  if (kind == "abort")
    std::abort();
#ifdef NDEBUG
#error "assertions are a part of this compiler: build it without NDEBUG"
#endif
  assert(kind != "assertion");
  if (kind == "exception")
    throw std::runtime_error("as PARTITA_CRASH wants it");
  if (kind == "fatal")
    llvm::report_fatal_error("as PARTITA_CRASH wants it");
  if (kind == "stack")
    std::exit(recurse(0) & 1);
  // Sent to the thread, as the processor would.
  if (kind == "bus")
    std::raise(SIGBUS);
  if (kind == "floating-point")
    std::raise(SIGFPE);
  if (kind == "illegal")
    std::raise(SIGILL);
  if (kind == "segmentation")
    *reinterpret_cast<volatile int *>(uintptr_t(8)) = 0;
}

} // namespace

void provokeCrash(llvm::StringRef name) {
  static const Wanted wanted;
  if (LLVM_UNLIKELY(!wanted.kind.empty()) && name == wanted.name)
    crash(wanted.kind);
}

} // namespace partita::crash
