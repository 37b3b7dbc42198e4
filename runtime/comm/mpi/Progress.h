//===- Progress.h - Messages move while devices compute ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MPI moves most bytes only while somebody calls it. A large message between
// two hosts would stand still while the device that sends it computes a unit,
// and the receiver would wait for the unit's end. So a process has a thread
// that calls MPI meanwhile.
//
// The thread works where there are messages under way and no device waits,
// which calls MPI anyway. It goes on as long as its calls move something.
// Otherwise it sleeps, for longer and longer, up to a millisecond: then it
// takes less than a percent of a core. With nothing under way it does not wake
// up at all.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_MPI_PROGRESS_H
#define PARTITA_RUNTIME_COMM_MPI_PROGRESS_H

#include "runtime/base/Status.h"

#include <atomic>
#include <memory>
#include <mpi.h>
#include <thread>

namespace partita::runtime::mpi {

class Progress {
public:
  /// Starts the thread. Where this process is alone there is none.
  static Expected<std::unique_ptr<Progress>> start(int processes);
  ~Progress();

  /// A message, or what belongs to one collective, is under way from `posted`
  /// to `waited`. They may be called by any thread, and allocate nothing.
  void posted();
  void waited() { under_way.fetch_sub(1, std::memory_order_relaxed); }

  /// Lives while a thread polls MPI itself.
  class Polling {
  public:
    explicit Polling(Progress &progress) : progress(progress) {
      progress.polling.fetch_add(1, std::memory_order_relaxed);
    }
    ~Polling() { progress.polling.fetch_sub(1, std::memory_order_relaxed); }
    Polling(const Polling &) = delete;

  private:
    Progress &progress;
  };

private:
  Progress() = default;
  void work();
  /// Whether the calls moved something, as far as their time tells.
  bool call();

  std::thread thread;
  MPI_Comm alone = MPI_COMM_NULL; ///< on which no message ever comes
  std::atomic<int> under_way = 0, polling = 0;
  /// Changes when a thread that waits for work is to look again.
  std::atomic<uint32_t> woken = 0;
  std::atomic<bool> asleep = false, stopping = false;
};

} // namespace partita::runtime::mpi

#endif // PARTITA_RUNTIME_COMM_MPI_PROGRESS_H
