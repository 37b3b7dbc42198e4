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

/// Lives on the thread of a device while it runs a step.
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

  /// Marks the calling thread as one that submits steps and does other work
  /// while other threads run them.
  static void stayOutside() { outside = true; }
  static bool isOutside() { return outside; }

private:
  const bool was_outside;
  static inline thread_local bool outside = false;
  static inline std::atomic<int> running = 0;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_BASE_STEPSCOPE_H
