//===- LocalCollectives.h - Collectives between threads ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each device has a seat in each of its collectives. To start, it writes the
// addresses of its source and target into its seat and increments `came`. To
// finish, it waits until all devices of its group have started. Then it does
// its share of the work, and reads the sources of the others directly. In an
// all_reduce it combines its share of the elements for the targets of all. In
// other collectives it fills its own target. Then it increments `done` and
// waits for the `done` of the others, because they read its source and may
// write its target.
//
// `start` copies a small source into the seat, and each device computes its
// whole target from these copies. So the devices wait for each other only once.
// A device may then be one round ahead of another that still reads, so a seat
// has two places for posted data.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_LOCAL_LOCALCOLLECTIVES_H
#define PARTITA_RUNTIME_COMM_LOCAL_LOCALCOLLECTIVES_H

#include "runtime/comm/Collective.h"
#include "runtime/comm/local/Counter.h"

#include <memory>
#include <vector>

namespace partita::runtime {

class LocalCollectives {
public:
  LocalCollectives(const std::vector<CollectiveInfo> &infos,
                   const Patience &patience);
  ~LocalCollectives();

  Status start(int collective, int device, int micro_batch, const void *source,
               void *target);
  Status finish(int collective, int device, int micro_batch);
  void abort();

private:
  struct Seat;
  struct Collective;

  /// Assigns the seats from `first` on to the devices of a group.
  void seat(Collective &of, const std::vector<int> &group, Seat *first) const;
  Expected<Seat *> seatOf(int collective, int device) const;
  /// Waits until `counter` of all seats of the group has reached the round of
  /// this seat. An error lists the devices whose counter has not; `what` is the
  /// end of its message.
  Status await(Seat &seat, Counter Seat::*counter, const char *what) const;
  void work(const Collective &of, Seat &seat) const;

  const Patience patience;
  std::vector<Collective> collectives;
  std::unique_ptr<Seat[]> seats;
  size_t count = 0;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_COMM_LOCAL_LOCALCOLLECTIVES_H
