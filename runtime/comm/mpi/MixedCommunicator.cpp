//===- MixedCommunicator.cpp - Threads in each of several processes -------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/mpi/MixedCommunicator.h"

#include "runtime/comm/mpi/Wait.h"

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
  auto between = MpiCommunicator::create(comm, placement, channels,
                                         micro_batches, patience, collectives);
  if (!between)
    return between.status();
  made->between = *between;

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
  std::vector<CollectiveInfo> within = collectives;
  for (CollectiveInfo &info : within) {
    std::erase_if(info.groups, [&](const std::vector<int> &group) {
      return !std::all_of(group.begin(), group.end(), isHere);
    });
    std::vector<bool> &local = made->local_groups.emplace_back(
        std::vector<bool>(size_t(placement.devices()), false));
    for (const std::vector<int> &group : info.groups)
      for (int device : group)
        local[size_t(device)] = true;
  }
  made->within = std::make_unique<LocalCommunicator>(
      here, micro_batches, patience.timeout_s + mpi::kNeighbourSlack, spin,
      within);
  return made;
}

Status MixedCommunicator::send(int channel, int micro_batch, const void *data,
                               int64_t bytes) {
  const int local = localOf(channel);
  return local >= 0 ? within->send(local, micro_batch, data, bytes)
                    : between->send(channel, micro_batch, data, bytes);
}

Status MixedCommunicator::recv(int channel, int micro_batch, void *data,
                               int64_t bytes) {
  const int local = localOf(channel);
  return local >= 0 ? within->recv(local, micro_batch, data, bytes)
                    : between->recv(channel, micro_batch, data, bytes);
}

Expected<const uint8_t *> MixedCommunicator::borrow(int channel,
                                                    int micro_batch,
                                                    uint8_t *data,
                                                    int64_t bytes) {
  const int local = localOf(channel);
  return local >= 0 ? within->borrow(local, micro_batch, data, bytes)
                    : between->borrow(channel, micro_batch, data, bytes);
}

bool MixedCommunicator::carriesDevices(int channel) const {
  return localOf(channel) >= 0;
}

Status MixedCommunicator::post(int channel, int micro_batch,
                               const Parcel &parcel) {
  const int local = localOf(channel);
  return local >= 0 ? within->post(local, micro_batch, parcel)
                    : between->post(channel, micro_batch, parcel);
}

Expected<Parcel> MixedCommunicator::take(int channel, int micro_batch,
                                         int64_t bytes) {
  const int local = localOf(channel);
  return local >= 0 ? within->take(local, micro_batch, bytes)
                    : between->take(channel, micro_batch, bytes);
}

void MixedCommunicator::release(int channel, int micro_batch) {
  if (const int local = localOf(channel); local >= 0)
    within->release(local, micro_batch);
}

Status MixedCommunicator::releaseAfter(int channel, int micro_batch,
                                       const Event &read) {
  const int local = localOf(channel);
  return local >= 0 ? within->releaseAfter(local, micro_batch, read)
                    : between->releaseAfter(channel, micro_batch, read);
}

Status MixedCommunicator::waitSentOn(int channel, int micro_batch,
                                     Queue &queue) {
  const int local = localOf(channel);
  return local >= 0 ? within->waitSentOn(local, micro_batch, queue)
                    : between->waitSentOn(channel, micro_batch, queue);
}

Status MixedCommunicator::waitSent(int channel, int micro_batch) {
  const int local = localOf(channel);
  return local >= 0 ? within->waitSent(local, micro_batch)
                    : between->waitSent(channel, micro_batch);
}

Communicator &MixedCommunicator::carrierOf(int collective, int device) const {
  const bool local = collective >= 0 &&
                     size_t(collective) < local_groups.size() && device >= 0 &&
                     size_t(device) < local_groups[size_t(collective)].size() &&
                     local_groups[size_t(collective)][size_t(device)];
  return local ? static_cast<Communicator &>(*within) : *between;
}

Status MixedCommunicator::start(int collective, int device, int micro_batch,
                                const void *source, void *target) {
  return carrierOf(collective, device)
      .start(collective, device, micro_batch, source, target);
}

Status MixedCommunicator::finish(int collective, int device, int micro_batch) {
  return carrierOf(collective, device).finish(collective, device, micro_batch);
}

void MixedCommunicator::abort() {
  between->abort();
  within->abort();
}

} // namespace partita::runtime
