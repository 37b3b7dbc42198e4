//===- MixedCommunicator.cpp - Threads in each of several processes -------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/mpi/MixedCommunicator.h"

#include "runtime/comm/mpi/Wait.h"
#include "runtime/comm/reduce/Group.h"

#include <algorithm>

namespace partita::runtime {

Expected<std::shared_ptr<MixedCommunicator>>
MixedCommunicator::create(MPI_Comm comm, const mpi::Placement &placement,
                          const std::vector<ChannelInfo> &channels,
                          int micro_batches, const mpi::Patience &patience,
                          bool spin,
                          const std::vector<CollectiveInfo> &collectives) {
  std::shared_ptr<MixedCommunicator> made(new MixedCommunicator);
  // It checks all channels and groups, those of one process too.
  made->between = PARTITA_TRY(MpiCommunicator::create(
      comm, placement, channels, micro_batches, patience, collectives));

  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  auto isHere = [&](int device) { return placement.processOf(device) == rank; };
  std::vector<ChannelInfo> here;
  for (const ChannelInfo &channel : channels) {
    const bool local = isHere(channel.source) && isHere(channel.target);
    made->local_channels.push_back(local ? int(here.size()) : -1);
    if (local)
      here.push_back(channel);
  }
  made->local_collectives = collectives;
  for (CollectiveInfo &info : made->local_collectives)
    std::erase_if(info.groups, [&](const std::vector<int> &group) {
      return !std::all_of(group.begin(), group.end(), isHere);
    });
  made->within = std::make_unique<LocalCommunicator>(
      here, micro_batches, patience.timeout_s + mpi::kNeighbourSlack, spin,
      made->local_collectives);
  return made;
}

std::unique_ptr<Sender> MixedCommunicator::sender(int channel,
                                                  const EndMemory &memory) {
  const int local = localOf(channel);
  return local >= 0 ? within->sender(local, memory)
                    : between->sender(channel, memory);
}

std::unique_ptr<Receiver> MixedCommunicator::receiver(int channel,
                                                      const EndMemory &memory) {
  const int local = localOf(channel);
  return local >= 0 ? within->receiver(local, memory)
                    : between->receiver(channel, memory);
}

std::unique_ptr<Participant>
MixedCommunicator::participant(int collective, int device,
                               const EndMemory &memory) {
  const bool local =
      collective >= 0 && size_t(collective) < local_collectives.size() &&
      membership(local_collectives[size_t(collective)], device).group;
  return local ? within->participant(collective, device, memory)
               : between->participant(collective, device, memory);
}

void MixedCommunicator::abort() {
  between->abort();
  within->abort();
}

} // namespace partita::runtime
