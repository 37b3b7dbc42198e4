//===- Counter.cpp - What a thread has done, for others to wait -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/local/Counter.h"

#include <cstdio>
#include <ctime>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace partita::runtime {
namespace {

/// About 50 us: longer than two threads of a pipeline are usually apart,
/// shorter than a time slice.
constexpr int kSpins = 2000;
/// Of these, one in so many lets another thread have the core: it may be the
/// one that is waited for.
constexpr int kYieldEvery = 128;

int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

/// Sleeps until `word` is not `seen` any more, is woken, or `ns` have passed.
void sleepOn(std::atomic<uint32_t> &word, uint32_t seen, int64_t ns) {
  timespec time{static_cast<time_t>(ns / 1000000000),
                static_cast<long>(ns % 1000000000)};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, &time, nullptr, 0);
}

void wake(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1 << 30, nullptr, nullptr, 0);
}

} // namespace

Patience::Patience(double timeout_s, bool spin)
    : timeout_s(timeout_s), spins(spin ? kSpins : 0) {}

int64_t Deadline::left() {
  const int64_t time = now();
  if (!at)
    at = time + static_cast<int64_t>(timeout_s * 1e9);
  return at - time;
}

std::string Deadline::message() const {
  char text[48];
  std::snprintf(text, sizeof(text), "waited %g s", timeout_s);
  return text;
}

void Counter::advance() {
  word.fetch_add(kOne);
  // Whoever counted itself as a sleeper before this load is woken; whoever does
  // so later sees the new count.
  if (sleepers.load())
    wake(word);
}

Counter::Outcome Counter::await(uint32_t count, int spins, Deadline &deadline) {
  uint32_t seen = word.load(std::memory_order_acquire);
  for (int i = 0; i < spins && !reached(seen, count) && !(seen & kAborted);
       ++i) {
    if (i % kYieldEvery == kYieldEvery - 1)
      sched_yield();
    else
      __builtin_ia32_pause();
    seen = word.load(std::memory_order_acquire);
  }
  if (reached(seen, count))
    return Outcome::reached;

  sleepers.fetch_add(1);
  Outcome outcome = Outcome::reached;
  while (!reached(seen = word.load(), count)) {
    if (seen & kAborted) {
      outcome = Outcome::aborted;
      break;
    }
    const int64_t left = deadline.left();
    if (left <= 0) {
      outcome = Outcome::late;
      break;
    }
    sleepOn(word, seen, left);
  }
  sleepers.fetch_sub(1);
  return outcome;
}

void Counter::abort() {
  word.fetch_or(kAborted);
  wake(word);
}

} // namespace partita::runtime
