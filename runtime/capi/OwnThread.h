//===- OwnThread.h - A thread that makes all calls of an object -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A session of one device is used by the thread that made it (Session.h), which
// it may pin to cores. Programs call from any thread, and keep theirs as it is.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_CAPI_OWNTHREAD_H
#define PARTITA_RUNTIME_CAPI_OWNTHREAD_H

#include "runtime/capi/Calls.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace partita::capi {

class OwnThread {
public:
  OwnThread() : thread([this] { work(); }) {}
  ~OwnThread() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      stopping = true;
    }
    changed.notify_all();
    thread.join();
  }
  OwnThread(const OwnThread &) = delete;
  OwnThread &operator=(const OwnThread &) = delete;

  /// Waits until the thread has called `function`, after those of others.
  Status run(const std::function<Status()> &function) {
    std::lock_guard<std::mutex> turn(turns);
    std::unique_lock<std::mutex> lock(mutex);
    next = &function;
    changed.notify_all();
    changed.wait(lock, [&] { return !next; });
    return std::move(result);
  }

private:
  void work() {
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return next || stopping; });
      if (!next)
        return;
      const std::function<Status()> &function = *next;
      lock.unlock();
      Status status = caught(function);
      lock.lock();
      result = std::move(status);
      next = nullptr;
      changed.notify_all();
    }
  }

  std::mutex turns; ///< of callers
  std::mutex mutex;
  std::condition_variable changed;
  const std::function<Status()> *next = nullptr; ///< under the mutex, as all
  Status result;
  bool stopping = false;
  std::thread thread; ///< last: it uses all others
};

} // namespace partita::capi

#endif // PARTITA_RUNTIME_CAPI_OWNTHREAD_H
