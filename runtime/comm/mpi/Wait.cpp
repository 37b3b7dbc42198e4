//===- Wait.cpp - Waiting for MPI with a deadline -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/mpi/Wait.h"

#include "runtime/comm/local/Counter.h"
#include "runtime/comm/mpi/LivenessCheck.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <sched.h>
#include <thread>

namespace partita::runtime::mpi {

namespace {

using Clock = std::chrono::steady_clock;

// A test of a request takes some 100 ns, so this is less than a time slice.
constexpr int kSpins = 500;
constexpr int kYields = 2000;
constexpr auto kLongestSleep = std::chrono::microseconds(200);

/// From when on waits fail, by the steady clock, in ns; 0: this process was not
/// interrupted.
std::atomic<int64_t> interrupted{0};
static_assert(std::atomic<int64_t>::is_always_lock_free);
/// How long each wait may last all the same, in ns.
std::atomic<int64_t> grace{0};

int64_t nowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now); // safe in a signal handler
  return int64_t(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

/// Those that are interrupted with this process answer for as long.
constexpr double kAnswers = kLivenessSeconds / 2;

} // namespace

void interrupt(double grace_s) {
  int64_t never = 0;
  const auto more = int64_t(grace_s * 1e9);
  grace.store(more, std::memory_order_relaxed);
  interrupted.compare_exchange_strong(never, nowNs() + more,
                                      std::memory_order_relaxed);
}

bool isInterrupted() {
  const int64_t since = interrupted.load(std::memory_order_relaxed);
  return since != 0 && nowNs() >= since;
}

Status interruptedError(LivenessCheck *liveness) {
  std::string text = "the launcher is ending the job, because another process "
                     "of it has ended or somebody asked for it";
  // Later, those who would have answered may have gone themselves.
  const double since =
      double(nowNs() - interrupted.load(std::memory_order_relaxed)) / 1e9;
  if (liveness && since < kAnswers)
    if (std::string who = nameAbsent(liveness->absent(kLivenessSeconds));
        !who.empty())
      text += " (" + who + ")";
  return Status::error(text);
}

Status failure(const char *call, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return Status::error(std::string(call) + " failed: " + text);
}

namespace {

Status late(const Patience &patience) {
  char text[80];
  std::snprintf(text, sizeof text, "nothing happened within %g s",
                patience.timeout_s);
  std::string said = text;
  if (patience.liveness) {
    // The others answer as long as their own time is not over.
    const std::string who =
        nameAbsent(patience.liveness->absent(kLivenessSeconds));
    if (!who.empty())
      said += " (" + who + ")";
  }
  return Status::error(said);
}

} // namespace

Status wait(MPI_Request &request, const Patience &patience,
            const std::atomic<bool> *stop, MPI_Status *status) {
  Clock::time_point begin;
  for (int polls = 0;; polls = std::min(polls + 1, kSpins + kYields)) {
    int done = 0;
    if (int code = MPI_Test(&request, &done, status); code != MPI_SUCCESS)
      return failure("the transfer", code);
    if (done)
      return Status();
    if (polls == 0)
      begin = Clock::now();
    if (isInterrupted() &&
        Clock::now() - begin >= std::chrono::nanoseconds(grace.load()))
      return interruptedError(patience.liveness);
    if (stop && stop->load(std::memory_order_relaxed))
      return abortedError();
    if (polls < kSpins)
      continue;
    Clock::duration waited = Clock::now() - begin;
    if (std::chrono::duration<double>(waited).count() > patience.timeout_s)
      return late(patience);
    if (polls < kSpins + kYields) {
      sched_yield();
      continue;
    }
    if (patience.liveness)
      patience.liveness->answer();
    std::this_thread::sleep_for(
        std::min<Clock::duration>(waited / 16, kLongestSleep));
  }
}

} // namespace partita::runtime::mpi
