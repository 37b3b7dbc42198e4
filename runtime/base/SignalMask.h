//===- SignalMask.h - No handler of a signal on this thread -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_BASE_SIGNALMASK_H
#define PARTITA_RUNTIME_BASE_SIGNALMASK_H

#include <csignal>

namespace partita::runtime {

/// While it lives, signals from outside do not interrupt the calling thread or
/// the threads that it starts. They go to another thread, or wait.
///
/// A thread that computes needs this. oneDNN's matrix products of f32 keep
/// their stack pointer in a buffer of packed panels, and a handler writes over
/// whatever lies below that.
class SignalMask {
public:
  SignalMask() {
    sigset_t others;
    sigfillset(&others);
    // What a thread does wrong itself.
    for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
      sigdelset(&others, own);
    pthread_sigmask(SIG_BLOCK, &others, &before);
  }
  ~SignalMask() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  SignalMask(const SignalMask &) = delete;
  SignalMask &operator=(const SignalMask &) = delete;

private:
  sigset_t before;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_BASE_SIGNALMASK_H
