//===- ThreadTeam.h - The cores of one device -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device computes with one OpenMP team: its own thread and threads - 1
// workers of libgomp. oneDNN uses the same team. libgomp keeps a team for each
// thread that starts parallel regions, so all calls must come from the thread
// that made the object. Workers spin for a time that libgomp's GOMP_SPINCOUNT
// bounds (partita-run sets it), and then sleep. A team of one has no workers
// and never spins.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_THREADTEAM_H
#define PARTITA_RUNTIME_DEVICE_CPU_THREADTEAM_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <vector>

namespace partita::runtime {

class ThreadTeam {
public:
  /// Whether there is memory for the stacks of so many threads. The library
  /// that starts them ends the process if it gets none.
  static Status hasRoom(int threads);

  /// Pins the team to `cores` (empty: to none), and makes all its threads flush
  /// denormals to zero.
  ThreadTeam(int threads, const std::vector<int> &cores);

  /// Makes the calling thread's parallel regions as large as the team. Only
  /// needed if a thread works for several teams in turn.
  void enter() const;

  int size() const { return threads; }

  /// Splits [0, extent) into at most one contiguous part per thread, calls
  /// function(thread, begin, end) for each, and returns when all are done. Only
  /// the last part may be smaller than `grain`.
  template <typename Function>
  void split(int64_t extent, int64_t grain, const Function &function) const {
    splitRange(
        extent, grain,
        [](const void *context, int thread, int64_t begin, int64_t end) {
          (*static_cast<const Function *>(context))(thread, begin, end);
        },
        &function);
  }

  /// Whether a thread of the team has computed with NaN, or made one, since the
  /// last call. The processor keeps a flag of it, at no cost. All instructions
  /// that drop NaN raise the flag, and so do some that keep it.
  bool metNan() const;

private:
  using RangeFunction = void (*)(const void *context, int thread, int64_t begin,
                                 int64_t end);
  void splitRange(int64_t extent, int64_t grain, RangeFunction function,
                  const void *context) const;

  int threads;
};

/// While the object lives, the library uses no other thread of a team than the
/// calling one, which works for the team.
class AloneInTeam {
public:
  explicit AloneInTeam(const ThreadTeam &team);
  ~AloneInTeam() { team.enter(); }
  AloneInTeam(const AloneInTeam &) = delete;
  AloneInTeam &operator=(const AloneInTeam &) = delete;

private:
  const ThreadTeam &team;
};

/// Makes the calling thread flush denormals to zero while the object lives.
class FlushDenormals {
public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals &) = delete;
  FlushDenormals &operator=(const FlushDenormals &) = delete;

private:
  unsigned saved;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_THREADTEAM_H
