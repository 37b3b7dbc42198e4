//===- ThreadTeam.cpp - The cores of one device ---------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/ThreadTeam.h"

#include "runtime/base/Arena.h"

#include <algorithm>
#include <omp.h>
#include <sched.h>
#include <xmmintrin.h>

namespace partita::runtime {
namespace {

constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040,
                   kInvalid = 0x0001;

void flushDenormals() {
  _mm_setcsr(_mm_getcsr() | kFlushToZero | kDenormalsAreZero);
}

/// Cores that have been taken away meanwhile are no reason to fail.
void pinTo(const std::vector<int> &cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core : cores)
    CPU_SET(core, &set);
  (void)sched_setaffinity(0, sizeof(set), &set);
}

} // namespace

Status ThreadTeam::hasRoom(int threads) {
  constexpr size_t kBeside = size_t(1) << 20; // guards, tables of the library
  const size_t bytes = size_t(std::max(threads - 1, 0)) * stackBytes() +
                       (threads > 1 ? kBeside : 0);
  Expected<Arena> room = Arena::map(bytes, "the stacks of its threads");
  return room.status();
}

ThreadTeam::ThreadTeam(int count, const std::vector<int> &cores)
    : threads(std::max(count, 1)) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(1);
  omp_set_num_threads(threads);
  // libgomp ends and starts workers when the library asks for a smaller team
  // and then for the whole one again. New workers inherit cores and
  // floating-point mode of this thread, so all threads of a team have the same:
  // the mask of all its cores, not one core each.
  auto prepare = [&] {
    flushDenormals();
    if (!cores.empty())
      pinTo(cores);
  };
  prepare();
  if (threads > 1) {
#pragma omp parallel num_threads(threads)
    prepare();
  }
}

void ThreadTeam::enter() const { omp_set_num_threads(threads); }

void ThreadTeam::splitRange(int64_t extent, int64_t grain,
                            RangeFunction function, const void *context) const {
  int64_t most = std::max<int64_t>(extent / std::max<int64_t>(grain, 1), 1);
  int64_t parts = std::min<int64_t>(threads, most);
  if (extent <= 0)
    return;
  if (parts == 1) {
    function(context, 0, 0, extent);
    return;
  }
  // All threads of the team enter, whatever `parts`: libgomp would end and
  // start workers if the size of the team changed.
#pragma omp parallel num_threads(threads)
  {
    int64_t thread = omp_get_thread_num();
    int64_t begin = extent * thread / parts;
    int64_t end = extent * (thread + 1) / parts;
    if (thread < parts && begin < end)
      function(context, static_cast<int>(thread), begin, end);
  }
}

bool ThreadTeam::metNan() const {
  unsigned raised = 0;
  auto ask = [] {
    const unsigned flags = _mm_getcsr();
    _mm_setcsr(flags & ~kInvalid);
    return flags & kInvalid;
  };
  if (threads == 1)
    return ask();
#pragma omp parallel num_threads(threads) reduction(| : raised)
  raised |= ask();
  return raised;
}

AloneInTeam::AloneInTeam(const ThreadTeam &team) : team(team) {
  omp_set_num_threads(1);
}

FlushDenormals::FlushDenormals() : saved(_mm_getcsr()) { flushDenormals(); }
FlushDenormals::~FlushDenormals() { _mm_setcsr(saved); }

} // namespace partita::runtime
