//===- Counter.h - A thread's progress, for others to await -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_LOCAL_COUNTER_H
#define PARTITA_RUNTIME_COMM_LOCAL_COUNTER_H

#include "runtime/base/Status.h"

#include <atomic>
#include <cstdint>

namespace partita::runtime {

/// How long a device waits.
struct Patience {
  double timeout_s = 60;
  int spins = 0; ///< polls of the counter before it sleeps

  Patience(double timeout_s, bool spin);
};

/// A deadline. Its time starts with the first call of `left`.
class Deadline {
public:
  explicit Deadline(double timeout_s) : timeout_s(timeout_s) {}
  /// Nanoseconds until the deadline; 0 or negative afterwards.
  int64_t left();
  /// "waited 0.2 s"
  std::string message() const;

private:
  double timeout_s;
  int64_t at = 0;
};

/// Counts the progress of one thread. Other threads wait for a count: they spin
/// for a short while and then sleep (futex), so that waiting devices leave the
/// cores to those that work. Counting continues over steps, modulo 2^31.
class Counter {
public:
  enum class Outcome { reached, aborted, late };

  /// May be called by the counting thread, and by a thread that has waited for
  /// it.
  uint32_t count() const { return word.load(std::memory_order_relaxed) >> 1; }
  /// Whether the counter has reached `count`. If so, everything that the
  /// counting thread wrote before is visible.
  bool reached(uint32_t count) const {
    return reached(word.load(std::memory_order_acquire), count);
  }
  /// Increments the count and wakes the waiting threads.
  void advance();
  Outcome await(uint32_t count, int spins, Deadline &deadline);
  /// Ends all present and later waits for counts that have not been reached.
  void abort();

private:
  static bool reached(uint32_t seen, uint32_t count) {
    return int32_t((seen & ~kAborted) - (count << 1)) >= 0;
  }

  static constexpr uint32_t kAborted = 1;
  static constexpr uint32_t kOne = 2;
  /// The upper 31 bits are the count. `abort` sets the lowest bit, so that a
  /// waiter sees the word change.
  std::atomic<uint32_t> word = 0;
  std::atomic<uint32_t> sleepers = 0;
};

/// The error of a device whose wait was ended by `abort`.
inline Status abortedError() {
  return Status::error("stopped, because another device failed");
}

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_COMM_LOCAL_COUNTER_H
