//===- MpiCollectives.h - Collectives between processes ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// These collectives consist of plain messages, because MPI's own collectives do
// not define the order of additions and wait without a deadline. `start` posts
// the sends, and the receives directly into the target. `finish` receives the
// parts that are to be combined. All collectives share the memory for these
// parts, because a device finishes one collective at a time.
//
//   all_reduce      a device gets its share from all others, combines it, and
//                   sends it to all others: of n devices, each sends
//                   2 (n - 1) / n of the tensor
//   reduce_scatter  the first half of that
//   the others      each device gets from each other one what it needs of it
//
// Messages of one collective between two processes arrive in the order in which
// they were sent, so a collective needs only one tag.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_MPI_MPICOLLECTIVES_H
#define PARTITA_RUNTIME_COMM_MPI_MPICOLLECTIVES_H

#include "runtime/base/Status.h"
#include "runtime/comm/Collective.h"

#include <memory>
#include <mpi.h>
#include <vector>

namespace partita::runtime::mpi {

class Collectives {
public:
  /// Creates the collectives of the device whose number is the rank in `comm`.
  /// Their tags begin at `first_tag`, one per collective. Fails if a collective
  /// cannot be carried out, or names a device that is not a rank.
  static Expected<std::unique_ptr<Collectives>>
  create(MPI_Comm comm, std::vector<CollectiveInfo> infos, int first_tag,
         double timeout_s);
  ~Collectives();

  Status start(int collective, int device, const void *source, void *target);
  Status finish(int collective, int device);

  /// Bytes of all messages that this process has posted.
  int64_t sentBytes() const { return sent_bytes; }

private:
  struct Collective;
  struct Message;

  Collectives() = default;
  Status prepare(CollectiveInfo info, int processes);
  Expected<Collective *> find(int collective, int device);
  Status send(Collective &of, const std::vector<Message> &messages,
              const uint8_t *from);
  Status receive(Collective &of, const std::vector<Message> &messages,
                 uint8_t *to);
  /// Waits for all messages in flight. An error lists the devices at the other
  /// ends.
  Status wait(Collective &of);
  /// Computes the part of the result that needs no more messages.
  void computeOwn(Collective &of);

  MPI_Comm comm = MPI_COMM_NULL;
  int first_tag = 0;
  double timeout = 60;
  int device = 0;
  std::vector<Collective> collectives;
  std::vector<uint8_t> received; ///< parts that are to be combined
  int64_t sent_bytes = 0;
};

} // namespace partita::runtime::mpi

#endif // PARTITA_RUNTIME_COMM_MPI_MPICOLLECTIVES_H
