//===- TicketLock.h - Streams that share devices ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_FEED_TICKETLOCK_H
#define PARTITA_RUNTIME_FEED_TICKETLOCK_H

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace partita::feed {

/// Lets one of several streams compute at a time, in the order in which they
/// came.
class TicketLock {
public:
  /// Blocks until it is the caller's turn.
  void lock() {
    std::unique_lock<std::mutex> lock(mutex);
    const uint64_t ticket = next++;
    changed.wait(lock, [&] { return now == ticket; });
  }
  void unlock() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      ++now;
    }
    changed.notify_all();
  }
  /// Whether another stream waits for the caller, whose turn it is.
  bool hasWaiters() const {
    std::lock_guard<std::mutex> lock(mutex);
    return next - now > 1;
  }

private:
  mutable std::mutex mutex;
  std::condition_variable changed;
  uint64_t next = 0; ///< the next ticket to hand out
  uint64_t now = 0;  ///< the ticket whose turn it is
};

} // namespace partita::feed

#endif // PARTITA_RUNTIME_FEED_TICKETLOCK_H
