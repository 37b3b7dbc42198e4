//===- Turns.h - Streams that share devices ---------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_FEED_TURNS_H
#define PARTITA_RUNTIME_FEED_TURNS_H

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace partita::feed {

/// Lets one of several streams compute at a time, in the order of their
/// requests.
class Turns {
public:
  /// Blocks until it is the caller's turn.
  void take() {
    std::unique_lock<std::mutex> lock(mutex);
    const uint64_t mine = next++;
    changed.wait(lock, [&] { return now == mine; });
  }
  void give() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      ++now;
    }
    changed.notify_all();
  }
  /// Whether another stream waits for the caller, whose turn it is.
  bool isWanted() const {
    std::lock_guard<std::mutex> lock(mutex);
    return next - now > 1;
  }

private:
  mutable std::mutex mutex;
  std::condition_variable changed;
  uint64_t next = 0,
           now =
               0; ///< the next number to hand out, and the one whose turn it is
};

} // namespace partita::feed

#endif // PARTITA_RUNTIME_FEED_TURNS_H
