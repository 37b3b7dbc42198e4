//===- StepScope.h - Whether a step is under way ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_BASE_STEPSCOPE_H
#define PARTITA_RUNTIME_BASE_STEPSCOPE_H

#include <atomic>

namespace partita::runtime {

/// Lives while a device of this process runs a step, on its thread.
class StepScope {
public:
  StepScope() : was_outside(outside) {
    outside = false;
    running.fetch_add(1, std::memory_order_relaxed);
  }
  ~StepScope() {
    running.fetch_sub(1, std::memory_order_relaxed);
    outside = was_outside;
  }
  StepScope(const StepScope &) = delete;
  StepScope &operator=(const StepScope &) = delete;

  static bool active() { return running.load(std::memory_order_relaxed) > 0; }

  /// This thread has no part in the steps of others: it hands them out, and
  /// does something else meanwhile.
  static void stayOutside() { outside = true; }
  static bool isOutside() { return outside; }

private:
  const bool was_outside;
  static inline thread_local bool outside = false;
  static inline std::atomic<int> running = 0;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_BASE_STEPSCOPE_H
