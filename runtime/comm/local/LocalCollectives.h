//===- LocalCollectives.h - Collectives between threads ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each device has a seat in each of its collectives. To start, it writes the
// addresses of its source and target there and counts up `came`. To finish, it
// waits until all of its group have come, and does its share straight out of
// the others' sources: its lines of an all_reduce, for the targets of all, or
// whatever belongs into its own target. Then it counts up `done`, and waits for
// the others', because they read its source and write its target.
//
// A few bytes are copied into the seat by `start`, and each device computes its
// whole target from there, so that they wait for each other only once. A device
// may then be one round ahead of another one that still reads; so a seat has
// two places for what is posted.
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

  /// Gives the devices of a group the seats from `first` on.
  void seat(Collective &of, const std::vector<int> &group, Seat *first) const;
  Expected<Seat *> seatOf(int collective, int device) const;
  /// Waits until a counter of all seats of the group is in the round of this
  /// one; an error lists who is not, and says for `what` that was.
  Status await(Seat &seat, Counter Seat::*counter, const char *what) const;
  void work(const Collective &of, Seat &seat) const;

  const Patience patience;
  std::vector<Collective> collectives;
  std::unique_ptr<Seat[]> seats;
  size_t count = 0;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_COMM_LOCAL_LOCALCOLLECTIVES_H
