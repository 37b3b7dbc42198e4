//===- MpiCollectives.h - Collectives between processes ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// These collectives consist of plain messages, because MPI's own collectives do
// not define the order of additions and wait without a deadline. `start` posts
// the sends, and the receives of what others send then. `finish` waits for
// them.
//
//   all_reduce      a device gets its share from all others, combines it, and
//                   gives it to all others: of n devices, each sends
//                   2 (n - 1) / n of the tensor
//   reduce_scatter  the first half of that
//   the others      each device gets from each other one what it needs of it
//
// Devices of a group that are in one process send each other nothing. Each
// reads the sources of the others where they are, and writes its share of an
// all_reduce into their targets, as LocalCollectives does. They have a seat for
// that, with a counter of the rounds that the device came to, and one of those
// that it is done with.
//
// Parts that are to be combined arrive in one of two buffers that the
// collectives of a device share. The first one is for the collective that was
// started while no other used it. Collectives that are started meanwhile
// receive their parts only in `finish`, in the second one: a device finishes
// one collective at a time.
//
// Messages of one collective between two devices arrive in the order in which
// they were sent, so a pair of devices needs one tag for each collective.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_MPI_MPICOLLECTIVES_H
#define PARTITA_RUNTIME_COMM_MPI_MPICOLLECTIVES_H

#include "runtime/base/Status.h"
#include "runtime/comm/Collective.h"
#include "runtime/comm/local/Counter.h"
#include "runtime/comm/mpi/Placement.h"
#include "runtime/comm/mpi/Progress.h"
#include "runtime/comm/mpi/Wait.h"

#include <atomic>
#include <memory>
#include <mpi.h>
#include <vector>

namespace partita::runtime::mpi {

class Collectives {
public:
  /// Creates the collectives of this process's devices. Their tags begin at
  /// `first_tag`, `tagsEach` for each collective. `stopped` becomes true when
  /// waits are to end; then call `wake`. Fails if a collective cannot be
  /// carried out, or names a device that is in no process.
  static Expected<std::unique_ptr<Collectives>>
  create(MPI_Comm comm, const Placement &placement,
         const std::vector<CollectiveInfo> &infos, int first_tag,
         const Patience &patience, const std::atomic<bool> &stopped,
         Progress &progress);
  ~Collectives();

  /// The number of tags of a collective: one for each place of the device that
  /// sends, in its process, and of the one that receives.
  static int64_t tagsEach(const Placement &placement);

  Status start(int collective, int device, const void *source, void *target);
  Status finish(int collective, int device);
  /// Wakes devices that wait for others of this process.
  void wake();

  /// Bytes of all messages that this process has posted.
  int64_t sentBytes() const { return sent_bytes; }

private:
  struct Collective;
  struct Message;
  struct Seat;

  Collectives(MPI_Comm comm, const Placement &placement,
              const Patience &patience, const std::atomic<bool> &stopped,
              Progress &progress);
  Status prepare(const CollectiveInfo &info);
  void prepareMessages(const Collective &of, Seat &seat);
  Expected<Seat *> find(int collective, int device);
  Status send(Seat &seat, const std::vector<Message> &messages,
              const uint8_t *from);
  Status receive(Seat &seat, const std::vector<Message> &messages, uint8_t *to);
  /// Waits for all messages in flight. An error lists the devices at the other
  /// ends.
  Status wait(Seat &seat);
  /// Waits until `counter` of all devices of the group that are in this process
  /// has reached the round of this one. `what` is the end of an error.
  Status awaitNeighbours(Seat &seat, Counter Seat::*counter, const char *what);
  /// Computes the part of the result that needs no more messages.
  void computeOwn(Seat &seat);

  const MPI_Comm comm;
  const Placement placement;
  const std::atomic<bool> &stopped;
  Progress &progress;
  const Patience patience;
  int rank = 0;
  int first_tag = 0;
  std::vector<std::unique_ptr<Collective>> collectives;
  /// The buffers of a device for parts that are to be combined.
  struct Pieces {
    int64_t bytes = 0; ///< of each
    std::unique_ptr<uint8_t[]> early, late;
    const Seat *user = nullptr; ///< of `early`
  };
  std::vector<Pieces> pieces; ///< by the device's place in this process
  std::atomic<int64_t> sent_bytes = 0;
};

} // namespace partita::runtime::mpi

#endif // PARTITA_RUNTIME_COMM_MPI_MPICOLLECTIVES_H
