//===- NcclCommunicator.cpp - Messages and collectives of GPUs ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/nccl/NcclCommunicator.h"

#include "runtime/comm/Ends.h"
#include "runtime/comm/local/Counter.h"
#include "runtime/comm/nccl/Endpoint.h"
#include "runtime/comm/reduce/Group.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>

namespace partita::runtime::nccl {
namespace {

class NcclCommunicator final : public Communicator {
public:
  NcclCommunicator(std::shared_ptr<Communicator> base, const UniqueId &id)
      : base(std::move(base)), id(id) {
    network.abort_all = [this] {
      std::lock_guard<std::mutex> lock(aborter_mutex);
      network.aborted = true;
      if (!aborter.joinable())
        aborter = std::thread([this] { abortEndpoints(); });
    };
  }
  ~NcclCommunicator() override {
    close();
    if (aborter.joinable())
      aborter.join();
  }

  /// Call it when `network` is complete.
  void open(const std::vector<int> &process_of, int process) {
    endpoints.resize(network.traffic.messages.size());
    for (int device : network.routes.devices)
      if (process_of[size_t(device)] == process)
        endpoints[size_t(device)] = std::make_unique<Endpoint>(network, device);
  }

  void attach(int device, Device &with) override {
    base->attach(device, with);
    if (Endpoint *endpoint = find(device))
      endpoint->attach(dynamic_cast<cuda::CudaDevice &>(with));
  }
  bool detach(int device) override {
    const bool is_idle = base->detach(device);
    Endpoint *endpoint = find(device);
    return (!endpoint || endpoint->detach()) && is_idle;
  }
  Status connect() override;

  std::unique_ptr<Sender> sender(int channel,
                                 const EndMemory &memory) override {
    if (!isRouted(channel))
      return base->sender(channel, memory);
    return std::make_unique<ChannelSender<Endpoint>>(
        *endpoints[size_t(ends(channel).source)], channel);
  }
  std::unique_ptr<Receiver> receiver(int channel,
                                     const EndMemory &memory) override {
    if (!isRouted(channel))
      return base->receiver(channel, memory);
    return std::make_unique<ChannelReceiver<Endpoint>>(
        *endpoints[size_t(ends(channel).target)], channel);
  }
  std::unique_ptr<Participant> participant(int collective, int device,
                                           const EndMemory &memory) override {
    const bool joins = collective >= 0 &&
                       size_t(collective) < network.routes.split_of.size() &&
                       network.routes.group(
                           network.routes.split_of[size_t(collective)], device);
    if (!joins)
      return base->participant(collective, device, memory);
    return std::make_unique<GroupParticipant<Endpoint>>(
        *endpoints[size_t(device)], collective, device);
  }
  void abort() override {
    network.aborted = true;
    base->abort();
    abortEndpoints();
  }

  Network network;

private:
  Endpoint *find(int device) {
    return size_t(device) < endpoints.size() ? endpoints[size_t(device)].get()
                                             : nullptr;
  }
  /// Whether NCCL carries the messages of a channel.
  bool isRouted(int channel) const {
    return channel >= 0 && size_t(channel) < network.routes.edge_of.size() &&
           network.routes.edge_of[size_t(channel)] >= 0;
  }
  const ChannelInfo &ends(int channel) const {
    return network.traffic.channels[size_t(channel)];
  }
  /// Of the endpoints, until one fails.
  template <typename Call> Status each(const Call &call) {
    for (const std::unique_ptr<Endpoint> &endpoint : endpoints)
      if (endpoint)
        PARTITA_TRY(call(*endpoint));
    return Status();
  }
  /// Of all endpoints at the same time: the first call of a communicator ends
  /// only when all devices have made it.
  template <typename Call> Status together(const Call &call) {
    std::vector<Status> statuses(endpoints.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < endpoints.size(); ++i)
      if (endpoints[i])
        threads.emplace_back([&, i] { statuses[i] = call(*endpoints[i]); });
    for (std::thread &thread : threads)
      thread.join();
    for (const Status &status : statuses)
      PARTITA_TRY(status);
    return Status();
  }
  Status settle() {
    return each([](Endpoint &endpoint) { return endpoint.settle(); });
  }
  void abortEndpoints() {
    (void)together([](Endpoint &endpoint) {
      endpoint.abort();
      return Status();
    });
  }
  Status makeConnections();
  void close();

  const std::shared_ptr<Communicator> base;
  const UniqueId id;
  std::vector<std::unique_ptr<Endpoint>> endpoints; ///< by device; or null
  bool connected = false;
  std::mutex aborter_mutex;
  std::thread aborter; ///< since a device has failed
};

/// All processes make the same calls in the same order.
Status NcclCommunicator::makeConnections() {
  PARTITA_TRY(base->connect());
  PARTITA_TRY(each([](Endpoint &endpoint) { return endpoint.open(); }));
  PARTITA_TRY(each([&](Endpoint &endpoint) { return endpoint.join(id); }));
  PARTITA_TRY(settle());
  for (size_t i = 0; i < network.routes.splits.size(); ++i) {
    PARTITA_TRY(
        each([&](Endpoint &endpoint) { return endpoint.split(int(i)); }));
    PARTITA_TRY(settle());
  }
  for (size_t i = 0; i < network.routes.edges.size(); ++i) {
    PARTITA_TRY(together(
        [&](Endpoint &endpoint) { return endpoint.warmUpEdge(int(i)); }));
    PARTITA_TRY(settle());
  }
  std::set<std::tuple<int, CollectiveKind, abi::DType, abi::Reduction>> known;
  for (size_t i = 0; i < network.traffic.collectives.size(); ++i) {
    const CollectiveInfo &info = network.traffic.collectives[i];
    const int split = network.routes.split_of[i];
    if (split < 0 ||
        !known.emplace(split, info.kind, info.dtype, info.reduction).second)
      continue;
    PARTITA_TRY(
        together([&](Endpoint &endpoint) { return endpoint.warmUp(int(i)); }));
    PARTITA_TRY(settle());
  }
  return Status();
}

Status NcclCommunicator::connect() {
  if (connected)
    return Status();
  Status status = makeConnections();
  connected = status.ok();
  if (!status.ok())
    abort();
  return status;
}

void NcclCommunicator::close() {
  if (network.aborted)
    return;
  for (auto split = int(network.routes.splits.size()); split-- > -1;) {
    if (!each([&](Endpoint &endpoint) {
           return endpoint.finalize(split);
         }).ok())
      return;
    (void)each([&](Endpoint &endpoint) {
      endpoint.destroy(split);
      return Status();
    });
  }
}

} // namespace

Expected<Made> withNccl(std::shared_ptr<Communicator> base,
                        const Traffic &traffic, const Gpus &gpus,
                        const Processes &processes, double timeout_s,
                        const Library &library) {
  if (std::count_if(gpus.begin(), gpus.end(),
                    [](int gpu) { return gpu >= 0; }) < 2)
    return Made{std::move(base), ""};
  auto handshake = PARTITA_TRY(shakeHands(gpus, processes, library));
  PARTITA_TRY(handshake.checkSharing());
  Routes routes = chooseRoutes(handshake.places, traffic);
  if (routes.empty())
    return Made{std::move(base), ""};
  PARTITA_TRY(handshake.checkVersions(library));
  PARTITA_TRY(handshake.checkModels(routes));
  if (!library.api)
    return Made{std::move(base), library.status.message() +
                                     ": GPUs exchange their bytes through the "
                                     "host; install libnccl.so.2"};
  auto id = PARTITA_TRY(shareId(processes, *library.api));

  auto made = std::make_shared<NcclCommunicator>(std::move(base), id);
  std::vector<int> process_of;
  for (const Place &place : handshake.places)
    process_of.push_back(place.process);
  made->network.api = library.api;
  made->network.traffic = traffic;
  made->network.routes = std::move(routes);
  made->network.timeout_s = timeout_s;
  made->network.interrupted = processes.interrupted;
  made->network.absent = processes.absent;
  if (processes.gather_all)
    made->network.process_of = process_of;
  made->open(process_of, processes.rank);
  return Made{std::move(made), handshake.remarkDrivers()};
}

} // namespace partita::runtime::nccl
