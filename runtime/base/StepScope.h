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

/// Lives while a session of this process runs a step.
class StepScope {
public:
  StepScope() { running.fetch_add(1, std::memory_order_relaxed); }
  ~StepScope() { running.fetch_sub(1, std::memory_order_relaxed); }
  StepScope(const StepScope &) = delete;
  StepScope &operator=(const StepScope &) = delete;

  static bool active() { return running.load(std::memory_order_relaxed) > 0; }

private:
  static inline std::atomic<int> running = 0;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_BASE_STEPSCOPE_H
