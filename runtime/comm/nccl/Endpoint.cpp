//===- Endpoint.cpp - A GPU's part in what NCCL does ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/nccl/Endpoint.h"

#include "runtime/comm/local/Counter.h"
#include "runtime/comm/reduce/Group.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace partita::runtime::nccl {
namespace {

using cuda::DeviceAddress;
using Clock = std::chrono::steady_clock;

} // namespace

Endpoint::Endpoint(Network &network, int device)
    : network(network), index(device), comms(network.routes.splits.size()),
      stream_of(network.routes.edges.size(), -1),
      parts(network.routes.edges.size()) {}

Endpoint::~Endpoint() { abort(); }

void Endpoint::attach(cuda::CudaDevice &with) {
  std::lock_guard<std::mutex> lock(mutex);
  attached = &with;
  gpu = with.sharedGpu();
  with.cudaQueue().setWatchdog(this);
}

bool Endpoint::detach() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!attached)
    return true;
  attached->cudaQueue().setWatchdog(nullptr);
  attached = nullptr;
  if (!network.aborted && awaitIdle(network.timeout_s).ok())
    return true;
  abortAll();
  if (awaitIdle(std::min(network.timeout_s, 5.0)).ok())
    return true;
  // A GPU that does not answer may still use all of it.
  for (WorkStream &work : streams) {
    work.stream.abandon();
    work.last_done.abandon();
  }
  for (cuda::DeviceBuffer *buffer : {&scratch, &tokens, &numbers})
    buffer->abandon();
  return false;
}

void Endpoint::abort() {
  std::lock_guard<std::mutex> lock(mutex);
  abortAll();
}

void Endpoint::abortAll() {
  while (true) {
    std::vector<CommHandle> handles;
    for (CommHandle &comm : comms)
      if (CommHandle handle = std::exchange(comm, nullptr))
        handles.push_back(handle);
    if (CommHandle handle = std::exchange(world, nullptr))
      handles.push_back(handle);
    if (handles.empty())
      return;
    abortTogether(handles);
    // A split that was going on may have come to its end before the abort.
  }
}

/// An abort may wait until the GPU is idle, while a kernel of another
/// communicator waits for devices that do not come. So none may come after
/// another.
void Endpoint::abortTogether(const std::vector<CommHandle> &handles) {
  struct Aborts {
    std::mutex mutex;
    std::condition_variable changed;
    size_t left = 0;
  };
  // What does not come back must not use what is gone.
  auto aborts = std::make_shared<Aborts>();
  auto start = [&](std::vector<CommHandle> part, bool is_group) {
    ++aborts->left;
    return std::thread([aborts, part = std::move(part), is_group, on = gpu,
                        &api = *network.api] {
      (void)on->use();
      const bool in_group = is_group && api.groupStart() == Result::success;
      for (CommHandle handle : part)
        (void)api.commAbort(handle);
      if (in_group)
        (void)api.groupEnd();
      std::lock_guard<std::mutex> lock(aborts->mutex);
      --aborts->left;
      aborts->changed.notify_all();
    });
  };
  std::vector<std::thread> threads;
  std::unique_lock<std::mutex> lock(aborts->mutex);
  if (network.api->version >= kGroupsAbort)
    threads.push_back(start(handles, true));
  else
    for (CommHandle handle : handles)
      threads.push_back(start({handle}, false));
  const double longest_s = std::clamp(network.timeout_s, 5.0, 20.0);
  if (!aborts->changed.wait_for(lock, std::chrono::duration<double>(longest_s),
                                [&] { return aborts->left == 0; })) {
    // Nothing can be given back, and whoever waits for this device would wait
    // for ever.
    std::fprintf(stderr,
                 "error: NCCL does not abort the connections of device %d "
                 "within %g s, so this process ends: %s [%s]\n",
                 index, longest_s, network.reason().message().c_str(),
                 history().c_str());
    std::_Exit(1);
  }
  lock.unlock();
  for (std::thread &thread : threads)
    thread.join();
}

Status Endpoint::ready() {
  PARTITA_TRY(stopped());
  if (!attached || !world)
    return Status::error("the GPUs are not connected");
  return gpu->use();
}

Status Endpoint::driver(cuda::Result result) {
  return result == cuda::Result::success
             ? Status()
             : fail(gpu->api.error(result, "messages between GPUs"));
}

Status Endpoint::poll(CommHandle comm, const Record &record) {
  const auto begin = Clock::now();
  while (true) {
    Result state = Result::success;
    if (Result result = network.api->commGetAsyncError(comm, &state);
        result != Result::success)
      state = result;
    if (state == Result::success)
      return Status();
    if (state != Result::in_progress)
      return fail(network.api->error(state, text(record)));
    PARTITA_TRY(stopped());
    const std::chrono::duration<double> waited = Clock::now() - begin;
    if (waited.count() > network.timeout_s) {
      Deadline deadline(network.timeout_s);
      return fail(Status::error(deadline.message() + " for NCCL, " +
                                text(record) + ", waiting for " +
                                whoIsMissing(record) + network.absentText()));
    }
    if (waited < std::chrono::milliseconds(1))
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

Status Endpoint::accept(CommHandle comm, Result result, const Record &record) {
  if (!works(result))
    return fail(network.api->error(result, text(record)));
  return poll(comm, record);
}

Status Endpoint::awaitIdle(double longest_s) {
  const auto begin = Clock::now();
  if (gpu)
    (void)gpu->use();
  for (const WorkStream &work : streams)
    while (work.stream.get() &&
           gpu->api.streamQuery(work.stream.get()) == cuda::Result::not_ready) {
      if (Clock::now() - begin > std::chrono::duration<double>(longest_s) ||
          (network.aborted && world))
        return Status::error("a stream does not come to its end");
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  return Status();
}

//===----------------------------------------------------------------------===//
// Connections
//===----------------------------------------------------------------------===//

int64_t Endpoint::mostScratch() const {
  int64_t most = 4096;
  for (size_t i = 0; i < network.traffic.collectives.size(); ++i) {
    const CollectiveInfo &info = network.traffic.collectives[i];
    const std::vector<int> *group =
        network.routes.group(network.routes.split_of[i], index);
    if (!group)
      continue;
    const auto size = static_cast<int64_t>(group->size());
    most = std::max(most, 16 * size); // for the first calls
    if (isScattered(info))
      most = std::max(most, size * rowBytes(info));
  }
  return most;
}

Status Endpoint::makeStream(int edge) {
  WorkStream &work = streams.emplace_back();
  work.edge = edge;
  work.stream = PARTITA_TRY(cuda::createStream(gpu));
  for (cuda::GpuEvent *event : {&work.ready, &work.done})
    *event = PARTITA_TRY(cuda::createEvent(gpu));
  work.last_done = PARTITA_TRY(cuda::allocatePinned(gpu, sizeof(uint32_t)));
  std::memset(work.last_done.get(), 0, sizeof(uint32_t));
  return Status();
}

Status Endpoint::open() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!attached)
    return Status::error("device " + std::to_string(index) + " is not there");
  PARTITA_TRY(gpu->use());
  const Traffic &traffic = network.traffic;
  const auto scratch_bytes = static_cast<size_t>(mostScratch());
  scratch =
      PARTITA_TRY(cuda::allocateDevice(gpu, scratch_bytes, "collectives"));
  tokens = PARTITA_TRY(cuda::allocateDevice(gpu, kTokenBytes, "messages"));
  numbers = PARTITA_TRY(cuda::allocateDevice(gpu, kNumbers * sizeof(uint32_t),
                                             "the numbers of messages"));
  std::vector<uint32_t> all(kNumbers);
  for (uint32_t i = 0; i < kNumbers; ++i)
    all[i] = i;
  const std::vector<uint8_t> zeros(scratch_bytes);
  for (const auto &[to, from, bytes] :
       {std::tuple(numbers.get(), static_cast<const void *>(all.data()),
                   all.size() * sizeof(uint32_t)),
        std::tuple(tokens.get(), static_cast<const void *>(zeros.data()),
                   kTokenBytes),
        std::tuple(scratch.get(), static_cast<const void *>(zeros.data()),
                   scratch_bytes)})
    PARTITA_TRY(attached->upload(cuda::pointerTo(to), from, bytes));

  streams.reserve(network.routes.edges.size() + 1);
  PARTITA_TRY(makeStream(-1));
  for (size_t i = 0; i < network.routes.edges.size(); ++i) {
    const Edge &edge = network.routes.edges[i];
    if (edge.source != index && edge.target != index)
      continue;
    stream_of[i] = static_cast<int>(streams.size());
    PARTITA_TRY(makeStream(static_cast<int>(i)));
    parts[i].reserve(edge.channels.size());
  }
  collective_done.resize(traffic.collectives.size());
  for (size_t i = 0; i < collective_done.size(); ++i)
    if (network.routes.group(network.routes.split_of[i], index))
      collective_done[i] = PARTITA_TRY(cuda::createEvent(gpu));
  const auto batches = static_cast<size_t>(traffic.micro_batches);
  sent.resize(traffic.channels.size() * batches);
  for (size_t i = 0; i < sent.size(); ++i)
    if (network.routes.edge_of[i / batches] >= 0 &&
        traffic.channels[i / batches].source == index)
      sent[i] = PARTITA_TRY(cuda::createEvent(gpu));
  return Status();
}

Status Endpoint::join(const UniqueId &id) {
  std::lock_guard<std::mutex> lock(mutex);
  PARTITA_TRY(stopped());
  PARTITA_TRY(gpu->use());
  const std::vector<int> &devices = network.routes.devices;
  const auto rank = static_cast<int>(
      std::find(devices.begin(), devices.end(), index) - devices.begin());
  Config config;
  config.blocking = 0;
  const Result result = network.api->commInitRankConfig(
      &world, static_cast<int>(devices.size()), id, rank, &config);
  if (works(result))
    return Status();
  world = nullptr;
  return fail(network.api->error(result, text({})));
}

Status Endpoint::split(int number) {
  std::lock_guard<std::mutex> lock(mutex);
  PARTITA_TRY(ready());
  const auto &groups = network.routes.splits[size_t(number)];
  int color = kNoColor, key = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto found = std::find(groups[i].begin(), groups[i].end(), index);
    if (found == groups[i].end())
      continue;
    color = static_cast<int>(i);
    key = static_cast<int>(found - groups[i].begin());
  }
  const Result result = network.api->commSplit(world, color, key,
                                               &comms[size_t(number)], nullptr);
  return works(result) ? Status() : fail(network.api->error(result, text({})));
}

Status Endpoint::settle() {
  std::lock_guard<std::mutex> lock(mutex);
  PARTITA_TRY(ready());
  PARTITA_TRY(poll(world, {}));
  for (CommHandle comm : comms)
    if (comm)
      PARTITA_TRY(poll(comm, {}));
  const auto begin = Clock::now();
  for (const WorkStream &work : streams)
    while (true) {
      const cuda::Result result = gpu->api.streamQuery(work.stream.get());
      if (result == cuda::Result::success)
        break;
      if (result != cuda::Result::not_ready)
        return driver(result);
      PARTITA_TRY(stopped());
      if (Clock::now() - begin >
          std::chrono::duration<double>(network.timeout_s)) {
        Deadline deadline(network.timeout_s);
        return fail(Status::error(deadline.message() + " for " + unfinished() +
                                  network.absentText()));
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  return Status();
}

Status Endpoint::warmUp(int collective) {
  std::lock_guard<std::mutex> lock(mutex);
  const int split = network.routes.split_of[size_t(collective)];
  const std::vector<int> *group = network.routes.group(split, index);
  if (!group)
    return Status();
  PARTITA_TRY(ready());
  CollectiveInfo info = network.traffic.collectives[size_t(collective)];
  info.rows = info.part = 1;
  WorkStream &work = streams.front();
  PARTITA_TRY(begin(work));
  const Record record{collective, -1, 0, false};
  PARTITA_TRY(perform(info, split, *group, record, scratch.get(),
                      scratch.get() + 8 * group->size()));
  return end(work, record, work.done.get());
}

Status Endpoint::warmUpEdge(int edge) {
  std::lock_guard<std::mutex> lock(mutex);
  const Edge &of = network.routes.edges[size_t(edge)];
  if (of.source != index && of.target != index)
    return Status();
  PARTITA_TRY(ready());
  const Part token{of.channels.front(), 0, nullptr};
  return exchange(edge, of.source == index, &token, 1);
}

Status Endpoint::finalize(int split) {
  std::lock_guard<std::mutex> lock(mutex);
  const CommHandle comm = split < 0 ? world : comms[size_t(split)];
  if (!comm)
    return Status();
  if (gpu)
    (void)gpu->use();
  const Result result = network.api->commFinalize(comm);
  return works(result) ? Status()
                       : fail(network.api->error(result, "the end of NCCL"));
}

void Endpoint::destroy(int split) {
  std::lock_guard<std::mutex> lock(mutex);
  CommHandle &comm = split < 0 ? world : comms[size_t(split)];
  if (!comm || !poll(comm, {}).ok())
    return; // what failed was aborted
  const CommHandle handle = std::exchange(comm, nullptr);
  if (network.api->commDestroy(handle) != Result::success)
    (void)network.api->commAbort(handle);
}

} // namespace partita::runtime::nccl
