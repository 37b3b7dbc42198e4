//===- MixedCommunicator.h - Threads in each of several processes -*- C++
//-*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The communicator of a process that runs some of a plan's devices, each in a
// thread of its own. A channel between two of them is `local`, and so is a
// collective whose group is all here. All others go through MPI.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_MPI_MIXEDCOMMUNICATOR_H
#define PARTITA_RUNTIME_COMM_MPI_MIXEDCOMMUNICATOR_H

#include "runtime/comm/local/LocalCommunicator.h"
#include "runtime/comm/mpi/MpiCommunicator.h"

#include <memory>
#include <vector>

namespace partita::runtime {

class MixedCommunicator final : public Communicator {
public:
  /// See MpiCommunicator::create. `spin`: see LocalCommunicator.
  static Expected<std::shared_ptr<MixedCommunicator>>
  create(MPI_Comm comm, const mpi::Placement &placement,
         const std::vector<ChannelInfo> &channels, int micro_batches,
         const mpi::Patience &patience, bool spin,
         const std::vector<CollectiveInfo> &collectives = {});

  bool detach(int device) override { return within->detach(device); }
  std::unique_ptr<Sender> sender(int channel, const EndMemory &memory) override;
  std::unique_ptr<Receiver> receiver(int channel,
                                     const EndMemory &memory) override;
  std::unique_ptr<Participant> participant(int collective, int device,
                                           const EndMemory &memory) override;
  void abort() override;

  /// Bytes of all messages that this process has posted for collectives.
  int64_t sentBytes() const { return between->sentBytes(); }

private:
  MixedCommunicator() = default;

  /// The number of a channel in `within`; -1: it leads to another process, or
  /// there is no such channel.
  int localOf(int channel) const {
    return channel >= 0 && size_t(channel) < local_channels.size()
               ? local_channels[size_t(channel)]
               : -1;
  }

  std::unique_ptr<LocalCommunicator> within;
  std::shared_ptr<MpiCommunicator> between;
  std::vector<int> local_channels; ///< see localOf
  /// The collectives, of the groups that are all here.
  std::vector<CollectiveInfo> local_collectives;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_COMM_MPI_MIXEDCOMMUNICATOR_H
