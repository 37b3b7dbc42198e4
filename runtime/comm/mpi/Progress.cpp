//===- Progress.cpp - Messages move while devices compute -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/mpi/Progress.h"

#include "runtime/base/StepScope.h"

#include <algorithm>
#include <chrono>
#include <system_error>

namespace partita::runtime::mpi {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

/// Some transports are looked at by one of eight calls only.
constexpr int kCalls = 16;
/// So many calls take a few microseconds at most if there is nothing to move.
constexpr auto kIdle = microseconds(40);
constexpr auto kShortestNap = microseconds(50);
constexpr auto kLongestNap = microseconds(1000);
/// After so many sleeps with nothing under way, the thread waits to be woken.
constexpr int kPatience = 20;

} // namespace

Expected<std::unique_ptr<Progress>> Progress::start(int processes) {
  std::unique_ptr<Progress> made(new Progress);
  if (processes == 1)
    return made;
  if (int code = MPI_Comm_dup(MPI_COMM_SELF, &made->alone); code != MPI_SUCCESS)
    return Status::error("MPI_Comm_dup failed");
  try {
    made->thread = std::thread([progress = made.get()] { progress->work(); });
  } catch (const std::system_error &error) {
    return Status::error(std::string("cannot start a thread for MPI: ") +
                         error.what());
  }
  return made;
}

Progress::~Progress() {
  if (thread.joinable()) {
    stopping = true;
    woken.fetch_add(1);
    woken.notify_one();
    thread.join();
  }
  if (alone != MPI_COMM_NULL)
    MPI_Comm_free(&alone);
}

void Progress::posted() {
  under_way.fetch_add(1);
  // Either this sees that the thread is asleep, or the thread sees the message.
  if (asleep.load() && asleep.exchange(false)) {
    woken.fetch_add(1);
    woken.notify_one();
  }
}

bool Progress::call() {
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < kCalls; ++i) {
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, alone, &found, MPI_STATUS_IGNORE);
  }
  return Clock::now() - begin > kIdle;
}

void Progress::work() {
  StepScope::stayOutside();
  microseconds sleep = kShortestNap;
  int idle = 0; // sleeps with nothing under way
  while (!stopping) {
    if (under_way.load(std::memory_order_relaxed) > 0) {
      idle = 0;
      if (polling.load(std::memory_order_relaxed) > 0)
        sleep = kLongestNap;
      else if (call()) {
        sleep = kShortestNap;
        continue;
      }
    } else if (++idle > kPatience) {
      const uint32_t seen = woken.load();
      asleep = true;
      if (under_way.load() == 0 && !stopping)
        woken.wait(seen);
      asleep = false;
      idle = 0;
      sleep = kShortestNap;
    }
    std::this_thread::sleep_for(sleep);
    sleep = std::min<microseconds>(sleep * 2, kLongestNap);
  }
}

} // namespace partita::runtime::mpi
