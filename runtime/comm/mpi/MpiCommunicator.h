//===- MpiCommunicator.h - Transfers between processes ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Carries the messages and collectives of devices that are in different
// processes. A Placement says which process has which devices. What devices of
// one process have with each other is not its business; MixedCommunicator joins
// both.
//
// A send is MPI_Issend. The synchronous mode completes only when the receiver
// has matched the message. That is what waitSent promises, so no
// acknowledgement of our own is needed. It also prevents unread messages from
// piling up in the receiver's memory when one stage is faster than the next.
// The tag is channel * micro_batches + micro_batch. Messages with the same key
// of two steps cannot overtake each other, because MPI keeps the order between
// two processes. The tags of collectives follow.
//
// What was posted goes on while devices compute: see Progress.
//
// The calls of a device are made by one thread. Where a process has several
// devices, their threads call MPI at the same time (MPI_THREAD_MULTIPLE).
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_MPI_MPICOMMUNICATOR_H
#define PARTITA_RUNTIME_COMM_MPI_MPICOMMUNICATOR_H

#include "runtime/comm/Communicator.h"
#include "runtime/comm/mpi/Layout.h"
#include "runtime/comm/mpi/MpiCollectives.h"
#include "runtime/comm/mpi/Placement.h"
#include "runtime/comm/mpi/Progress.h"
#include "runtime/comm/mpi/Wait.h"

#include <atomic>
#include <memory>
#include <mpi.h>
#include <vector>

namespace partita::runtime {

class MpiCommunicator : public Communicator {
public:
  /// Nobody else may use `comm`, and it must outlive this object. Its processes
  /// are those of the placement. Fails if the channels, micro-batches and
  /// collectives need more tags than this MPI library has, if a channel or a
  /// collective names a device that is in no process, or if a collective cannot
  /// be carried out.
  static Expected<std::shared_ptr<MpiCommunicator>>
  create(MPI_Comm comm, const mpi::Placement &placement,
         std::vector<ChannelInfo> channels, int micro_batches,
         mpi::Patience patience, std::vector<CollectiveInfo> collectives = {});
  ~MpiCommunicator() override;

  std::unique_ptr<Sender> sender(int channel, const EndMemory &memory) override;
  std::unique_ptr<Receiver> receiver(int channel,
                                     const EndMemory &memory) override;
  std::unique_ptr<Participant> participant(int collective, int device,
                                           const EndMemory &memory) override;

  //===--- What the ends call, for bytes of the host ----------------------===//

  Status send(int channel, int micro_batch, const void *data, int64_t bytes);
  Status recv(int channel, int micro_batch, void *data, int64_t bytes);
  Status waitSent(int channel, int micro_batch);
  Status start(int collective, int device, int micro_batch, const void *source,
               void *target);
  Status finish(int collective, int device, int micro_batch);

  /// Bytes of all messages that this process has posted for collectives.
  int64_t sentBytes() const { return collectives->sentBytes(); }

  /// Makes every later call return an error. The other processes learn of it
  /// when the program ends the job (mpi::Job::abort), after it has reported the
  /// reason.
  void abort() override;

private:
  explicit MpiCommunicator(const mpi::Placement &placement)
      : placement(placement) {}

  Status checkKey(int channel, int micro_batch, int64_t bytes) const;
  /// Adds to an error of a wait for which device it waited.
  Status explain(const Status &status, int device) const;
  int tag(int channel, int micro_batch) const {
    return channel * microBatches + micro_batch;
  }

  const mpi::Placement placement;
  MPI_Comm comm = MPI_COMM_NULL;
  std::vector<ChannelInfo> channels;
  std::vector<mpi::Layout> layouts;  ///< by channel
  std::vector<MPI_Request> unwaited; ///< sends, by tag
  int microBatches = 1;
  std::unique_ptr<mpi::Progress> progress;
  std::unique_ptr<mpi::Collectives> collectives;
  mpi::Patience patience = 60;
  std::atomic<bool> aborted = false;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_COMM_MPI_MPICOMMUNICATOR_H
