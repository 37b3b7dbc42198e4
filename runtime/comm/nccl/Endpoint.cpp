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
#include <cstring>
#include <thread>

namespace partita::runtime::nccl {
namespace {

using cuda::addressOf;
using cuda::DeviceAddress;
using Clock = std::chrono::steady_clock;

DeviceAddress addressOf(const void *data) {
  return addressOf(static_cast<const uint8_t *>(data));
}
void *pointer(DeviceAddress address) { return cuda::pointerTo(address); }

/// The part of a device in bytes that NCCL wants apart: all parts one after
/// another, where the plan has them in rows.
bool isScattered(const CollectiveInfo &info) {
  return info.rows > 1 && (info.kind == CollectiveKind::all_gather ||
                           info.kind == CollectiveKind::reduce_scatter ||
                           info.kind == CollectiveKind::all_to_all);
}

bool isEmpty(const CollectiveInfo &info) {
  return info.rows == 0 || info.part == 0;
}

} // namespace

Status Network::note(const Status &status) {
  std::lock_guard<std::mutex> lock(mutex);
  if (first.ok())
    return first = status;
  return Status::error(abortedError().message() + ": " + first.message());
}

std::string Network::absentText() const {
  std::string text;
  if (absent)
    for (int process : absent())
      text += (text.empty() ? "; no answer from process " : ", process ") +
              std::to_string(process);
  return text;
}

Endpoint::Endpoint(Network &network, int device)
    : network(network), index(device), comms(network.routes.splits.size()),
      way_of(network.routes.edges.size(), -1),
      parts(network.routes.edges.size()) {}

Endpoint::~Endpoint() { abort(); }

void Endpoint::attach(cuda::CudaDevice &with) {
  std::lock_guard<std::mutex> lock(mutex);
  attached = &with;
  gpu = with.sharedGpu();
  with.cudaQueue().accompany(this);
}

bool Endpoint::detach() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!attached)
    return true;
  attached->cudaQueue().accompany(nullptr);
  attached = nullptr;
  if (!network.aborted && awaitIdle(network.timeout_s).ok())
    return true;
  abortAll();
  if (awaitIdle(std::min(network.timeout_s, 5.0)).ok())
    return true;
  // A GPU that does not answer may still use all of it.
  for (Way &way : ways) {
    way.stream.abandon();
    way.last_done.abandon();
  }
  for (cuda::DeviceBuffer *buffer : {&scratch, &tokens, &numbers})
    buffer->abandon();
  return false;
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

std::string Endpoint::whoIsMissing(const Record &record) const {
  std::vector<int> others;
  if (record.collective >= 0) {
    others = *membership(network.traffic.collectives[size_t(record.collective)],
                         index)
                  .group;
  } else if (record.channel >= 0) {
    const ChannelInfo &channel =
        network.traffic.channels[size_t(record.channel)];
    others = {channel.source, channel.target};
  } else {
    others = network.routes.devices;
  }
  std::erase(others, index);
  return network.text(others);
}

std::string Endpoint::text(const Record &record) const {
  const std::string batch =
      ", micro-batch " + std::to_string(record.micro_batch);
  if (record.collective >= 0)
    return std::string(abi::EnumNameCollectiveKind(
               network.traffic.collectives[size_t(record.collective)].kind)) +
           " (collective " + std::to_string(record.collective) + ")" + batch;
  if (record.channel >= 0)
    return (record.is_send ? "send (channel " : "receive (channel ") +
           std::to_string(record.channel) + ")" + batch;
  return "the connection of the GPUs";
}

/// How many of the last operations are not done.
uint32_t Endpoint::undone(const Way &way) const {
  const uint32_t number =
      *static_cast<const volatile uint32_t *>(way.last_done.get());
  return (way.count - number) % kNumbers;
}

/// The first operation of each stream that is not done; empty: there is none.
std::string Endpoint::unfinished() const {
  std::string said;
  for (const Way &way : ways) {
    const uint32_t behind = undone(way);
    if (behind == 0)
      continue;
    const uint32_t first = way.count - std::min(behind, kRecords) + 1;
    const Record &record = way.records[first % kRecords];
    said += (said.empty() ? "" : "; ") + text(record) + ", waiting for " +
            whoIsMissing(record);
  }
  return said;
}

std::string Endpoint::history() const {
  std::string said;
  for (const Way &way : ways) {
    const uint32_t behind = undone(way);
    for (uint32_t back = std::min(way.count, kRecords); back > 0; --back) {
      const uint32_t number = way.count - back + 1;
      said += (said.empty() ? "the last operations of device " +
                                  std::to_string(index) + ": "
                            : "; ") +
              text(way.records[number % kRecords]) +
              (back <= behind ? " (not done)" : " (done)");
    }
  }
  return said;
}

Status Endpoint::fail(const Status &status) {
  if (failure.ok()) {
    const std::string last = history();
    failure = network.note(Status::error(
        status.message() + (last.empty() ? "" : " [" + last + "]")));
  }
  abortAll();
  return failure;
}

Status Endpoint::stopped() {
  if (!failure.ok())
    return failure;
  if (network.aborted) {
    abortAll();
    return failure = abortedError();
  }
  if (network.interrupted)
    if (Status status = network.interrupted(); !status.ok()) {
      const std::string waits = unfinished();
      return fail(waits.empty() ? status
                                : Status::error(status.message() + ": " +
                                                waits + network.absentText()));
    }
  return Status();
}

Status Endpoint::check() {
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  if (!lock)
    return Status(); // its own thread is at work
  if (Status status = stopped(); !status.ok())
    return status;
  for (CommHandle comm : comms) {
    Result state = Result::success;
    if (!comm)
      continue;
    Result result = network.api->commGetAsyncError(comm, &state);
    if (result == Result::success && state == Result::in_progress)
      continue;
    if (result == Result::success)
      result = state;
    if (result != Result::success) {
      const std::string waits = unfinished();
      return fail(network.api->error(
          result, waits.empty() ? "messages between GPUs" : waits));
    }
  }
  return Status();
}

std::string Endpoint::giveUp() {
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  if (!lock)
    return "";
  const std::string waits = unfinished();
  if (waits.empty())
    return "";
  const std::string said =
      waits + network.absentText() + " [" + history() + "]";
  failure = network.note(Status::error(said));
  abortAll();
  return said;
}

void Endpoint::abort() {
  std::lock_guard<std::mutex> lock(mutex);
  abortAll();
}

void Endpoint::abortAll() {
  // Those that were split off first.
  for (CommHandle &comm : comms)
    if (CommHandle handle = std::exchange(comm, nullptr))
      (void)network.api->commAbort(handle);
  if (CommHandle handle = std::exchange(world, nullptr))
    (void)network.api->commAbort(handle);
}

Status Endpoint::ready() {
  if (Status status = stopped(); !status.ok())
    return status;
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
    if (Status status = stopped(); !status.ok())
      return status;
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
  if (result != Result::success && result != Result::in_progress)
    return fail(network.api->error(result, text(record)));
  return poll(comm, record);
}

Status Endpoint::awaitIdle(double longest_s) {
  const auto begin = Clock::now();
  if (gpu)
    (void)gpu->use();
  for (const Way &way : ways)
    while (way.stream.get() &&
           gpu->api.streamQuery(way.stream.get()) == cuda::Result::not_ready) {
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

Status Endpoint::makeWay(int edge) {
  Way &way = ways.emplace_back();
  way.edge = edge;
  auto stream = cuda::createStream(gpu);
  if (!stream)
    return stream.status();
  way.stream = std::move(*stream);
  for (cuda::GpuEvent *event : {&way.ready, &way.done}) {
    auto made = cuda::createEvent(gpu);
    if (!made)
      return made.status();
    *event = std::move(*made);
  }
  auto pinned = cuda::allocatePinned(gpu, sizeof(uint32_t));
  if (!pinned)
    return pinned.status();
  way.last_done = std::move(*pinned);
  std::memset(way.last_done.get(), 0, sizeof(uint32_t));
  return Status();
}

Status Endpoint::open() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!attached)
    return Status::error("device " + std::to_string(index) + " is not there");
  if (Status status = gpu->use(); !status.ok())
    return status;
  const Traffic &traffic = network.traffic;
  const auto scratch_bytes = static_cast<size_t>(mostScratch());
  auto more = cuda::allocateDevice(gpu, scratch_bytes, "collectives");
  if (!more)
    return more.status();
  scratch = std::move(*more);
  auto few = cuda::allocateDevice(gpu, kTokenBytes, "messages");
  if (!few)
    return few.status();
  tokens = std::move(*few);
  auto counted = cuda::allocateDevice(gpu, kNumbers * sizeof(uint32_t),
                                      "the numbers of messages");
  if (!counted)
    return counted.status();
  numbers = std::move(*counted);
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
    if (Status status = attached->upload(cuda::pointerTo(to), from, bytes);
        !status.ok())
      return status;

  ways.reserve(network.routes.edges.size() + 1);
  if (Status status = makeWay(-1); !status.ok())
    return status;
  for (size_t i = 0; i < network.routes.edges.size(); ++i) {
    const Edge &edge = network.routes.edges[i];
    if (edge.source != index && edge.target != index)
      continue;
    way_of[i] = static_cast<int>(ways.size());
    if (Status status = makeWay(static_cast<int>(i)); !status.ok())
      return status;
    parts[i].reserve(edge.channels.size());
  }
  auto makeEvents = [&](std::vector<cuda::GpuEvent> &events, size_t count,
                        const auto &needs) -> Status {
    events.resize(count);
    for (size_t i = 0; i < count; ++i) {
      if (!needs(i))
        continue;
      auto made = cuda::createEvent(gpu);
      if (!made)
        return made.status();
      events[i] = std::move(*made);
    }
    return Status();
  };
  const auto batches = static_cast<size_t>(traffic.micro_batches);
  Status status =
      makeEvents(collective_done, traffic.collectives.size(), [&](size_t i) {
        return network.routes.group(network.routes.split_of[i], index);
      });
  if (!status.ok())
    return status;
  return makeEvents(sent, traffic.channels.size() * batches, [&](size_t i) {
    return network.routes.edge_of[i / batches] >= 0 &&
           traffic.channels[i / batches].source == index;
  });
}

Status Endpoint::join(const UniqueId &id) {
  std::lock_guard<std::mutex> lock(mutex);
  if (Status status = stopped(); !status.ok())
    return status;
  if (Status status = gpu->use(); !status.ok())
    return status;
  const std::vector<int> &devices = network.routes.devices;
  const auto rank = static_cast<int>(
      std::find(devices.begin(), devices.end(), index) - devices.begin());
  Config config;
  config.blocking = 0;
  const Result result = network.api->commInitRankConfig(
      &world, static_cast<int>(devices.size()), id, rank, &config);
  if (result == Result::success || result == Result::in_progress)
    return Status();
  world = nullptr;
  return fail(network.api->error(result, text({})));
}

Status Endpoint::split(int number) {
  std::lock_guard<std::mutex> lock(mutex);
  if (Status status = ready(); !status.ok())
    return status;
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
  return result == Result::success || result == Result::in_progress
             ? Status()
             : fail(network.api->error(result, text({})));
}

Status Endpoint::settle() {
  std::lock_guard<std::mutex> lock(mutex);
  if (Status status = ready(); !status.ok())
    return status;
  if (Status status = poll(world, {}); !status.ok())
    return status;
  for (CommHandle comm : comms)
    if (comm)
      if (Status status = poll(comm, {}); !status.ok())
        return status;
  const auto begin = Clock::now();
  for (const Way &way : ways)
    while (true) {
      const cuda::Result result = gpu->api.streamQuery(way.stream.get());
      if (result == cuda::Result::success)
        break;
      if (result != cuda::Result::not_ready)
        return driver(result);
      if (Status status = stopped(); !status.ok())
        return status;
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
  if (Status status = ready(); !status.ok())
    return status;
  CollectiveInfo info = network.traffic.collectives[size_t(collective)];
  info.rows = info.part = 1;
  Way &way = ways.front();
  if (Status status = begin(way); !status.ok())
    return status;
  const Record record{collective, -1, 0, false};
  if (Status status = perform(info, split, *group, record, scratch.get(),
                              scratch.get() + 8 * group->size());
      !status.ok())
    return status;
  return end(way, record, way.done.get());
}

Status Endpoint::warmUpEdge(int edge) {
  std::lock_guard<std::mutex> lock(mutex);
  const Edge &of = network.routes.edges[size_t(edge)];
  if (of.source != index && of.target != index)
    return Status();
  if (Status status = ready(); !status.ok())
    return status;
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
  return result == Result::success || result == Result::in_progress
             ? Status()
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

//===----------------------------------------------------------------------===//
// A step
//===----------------------------------------------------------------------===//

/// What the queue was given before comes before what follows in a stream.
Status Endpoint::begin(Way &way) {
  const cuda::Api &api = gpu->api;
  for (cuda::Result result :
       {api.eventRecord(way.ready.get(), attached->cudaQueue().stream()),
        api.streamWaitEvent(way.stream.get(), way.ready.get(), 0)})
    if (Status status = driver(result); !status.ok())
      return status;
  return Status();
}

Status Endpoint::end(Way &way, const Record &record, cuda::EventHandle done) {
  const cuda::Api &api = gpu->api;
  const uint32_t number = ++way.count;
  way.records[number % kRecords] = record;
  for (cuda::Result result :
       {api.eventRecord(done, way.stream.get()),
        api.memcpyDtoHAsync(way.last_done.get(),
                            numbers.get() +
                                number % kNumbers * sizeof(uint32_t),
                            sizeof(uint32_t), way.stream.get())})
    if (Status status = driver(result); !status.ok())
      return status;
  return Status();
}

Status Endpoint::copy(DeviceAddress to, DeviceAddress from, int64_t bytes) {
  return to == from || bytes == 0
             ? Status()
             : driver(gpu->api.memcpyDtoDAsync(to, from,
                                               static_cast<size_t>(bytes),
                                               ways.front().stream.get()));
}

Status Endpoint::copyRows(int64_t rows, int64_t bytes, DeviceAddress to,
                          int64_t to_pitch, DeviceAddress from,
                          int64_t from_pitch) {
  if (std::max(to_pitch, from_pitch) > gpu->mostPitch()) {
    // Rows of such a length are few.
    for (int64_t row = 0; row < rows; ++row)
      if (Status status =
              copy(to + static_cast<DeviceAddress>(row * to_pitch),
                   from + static_cast<DeviceAddress>(row * from_pitch), bytes);
          !status.ok())
        return status;
    return Status();
  }
  cuda::Copy2D copy;
  copy.source_device = from;
  copy.source_pitch = static_cast<size_t>(from_pitch);
  copy.target_device = to;
  copy.target_pitch = static_cast<size_t>(to_pitch);
  copy.width = static_cast<size_t>(bytes);
  copy.height = static_cast<size_t>(rows);
  return driver(gpu->api.memcpy2DAsync(&copy, ways.front().stream.get()));
}

Status Endpoint::allToAll(CommHandle comm, const CollectiveInfo &info, int size,
                          int rank, const Record &record, DeviceAddress source,
                          DeviceAddress target) {
  const Api &api = *network.api;
  const int64_t whole = rowBytes(info);
  const StreamHandle stream = ways.front().stream.get();
  if (Status status =
          copy(target + static_cast<DeviceAddress>(rank * whole),
               source + static_cast<DeviceAddress>(rank * whole), whole);
      !status.ok())
    return status;
  auto works = [](Result result) {
    return result == Result::success || result == Result::in_progress;
  };
  Result result = api.groupStart();
  if (!works(result))
    return fail(api.error(result, text(record)));
  for (int other = 0; other < size && works(result); ++other) {
    const auto offset = static_cast<DeviceAddress>(other * whole);
    if (other == rank)
      continue;
    result = api.send(pointer(source + offset), static_cast<size_t>(whole),
                      DataType::uint8, other, comm, stream);
    if (works(result))
      result = api.recv(pointer(target + offset), static_cast<size_t>(whole),
                        DataType::uint8, other, comm, stream);
  }
  const Result ended = api.groupEnd();
  return accept(comm, works(result) ? ended : result, record);
}

/// On the stream of collectives.
Status Endpoint::perform(const CollectiveInfo &info, int split,
                         const std::vector<int> &group, const Record &record,
                         DeviceAddress source, DeviceAddress target) {
  if (isEmpty(info))
    return Status();
  const Api &api = *network.api;
  const CommHandle comm = comms[size_t(split)];
  const StreamHandle stream = ways.front().stream.get();
  const auto size = static_cast<int>(group.size());
  const auto rank = static_cast<int>(
      std::find(group.begin(), group.end(), index) - group.begin());
  const int64_t part = partBytes(info), whole = rowBytes(info);
  const auto bytes = static_cast<size_t>(whole),
             elements = static_cast<size_t>(info.rows * info.part);
  const bool scattered = isScattered(info);
  auto at = [](DeviceAddress address, int64_t offset) {
    return address + static_cast<DeviceAddress>(offset);
  };
  // Each device's rows one after another, as NCCL has them.
  if (scattered && info.kind != CollectiveKind::all_gather) {
    for (int other = 0; other < size; ++other)
      if (Status status =
              copyRows(info.rows, part, at(scratch.get(), other * whole), part,
                       at(source, other * part), size * part);
          !status.ok())
        return status;
    source = scratch.get();
  }
  Combination combination;
  if (combines(info.kind)) {
    auto found = combinationOf(info.dtype, info.reduction);
    if (!found)
      return found.status();
    combination = *found;
  }
  switch (info.kind) {
  case CollectiveKind::all_reduce:
    return accept(comm,
                  api.allReduce(pointer(source), pointer(target), elements,
                                combination.type, combination.op, comm, stream),
                  record);
  case CollectiveKind::reduce_scatter:
    return accept(comm,
                  api.reduceScatter(pointer(source), pointer(target), elements,
                                    combination.type, combination.op, comm,
                                    stream),
                  record);
  case CollectiveKind::broadcast: {
    // Its ranks are not rotated.
    const int first =
        membership(network.traffic.collectives[size_t(record.collective)],
                   index)
            .group->front();
    const auto root = static_cast<int>(
        std::find(group.begin(), group.end(), first) - group.begin());
    return accept(comm,
                  api.broadcast(pointer(source), pointer(target), bytes,
                                DataType::uint8, root, comm, stream),
                  record);
  }
  case CollectiveKind::all_to_all:
    return allToAll(comm, info, size, rank, record, source, target);
  case CollectiveKind::all_gather:
    break;
  }
  const DeviceAddress gathered = scattered ? scratch.get() : target;
  if (Status status =
          accept(comm,
                 api.allGather(pointer(source), pointer(gathered), bytes,
                               DataType::uint8, comm, stream),
                 record);
      !status.ok() || !scattered)
    return status;
  for (int other = 0; other < size; ++other)
    if (Status status =
            copyRows(info.rows, part, at(target, other * part), size * part,
                     at(gathered, other * whole), part);
        !status.ok())
      return status;
  return Status();
}

Status Endpoint::start(int collective, int micro_batch, const void *source,
                       void *target) {
  std::lock_guard<std::mutex> lock(mutex);
  if (Status status = ready(); !status.ok())
    return status;
  const int split = network.routes.split_of[size_t(collective)];
  const Record record{collective, -1, micro_batch, false};
  Way &way = ways.front();
  if (Status status = begin(way); !status.ok())
    return status;
  if (Status status = perform(network.traffic.collectives[size_t(collective)],
                              split, *network.routes.group(split, index),
                              record, addressOf(source), addressOf(target));
      !status.ok())
    return status;
  return end(way, record, collective_done[size_t(collective)].get());
}

Status Endpoint::finish(int collective) {
  std::lock_guard<std::mutex> lock(mutex);
  if (Status status = ready(); !status.ok())
    return status;
  return driver(
      gpu->api.streamWaitEvent(attached->cudaQueue().stream(),
                               collective_done[size_t(collective)].get(), 0));
}

/// Messages of one edge and one micro-batch, as one group of calls.
Status Endpoint::exchange(int edge, bool is_send, const Part *first,
                          size_t count) {
  const Api &api = *network.api;
  const Edge &of = network.routes.edges[size_t(edge)];
  const CommHandle comm = comms[size_t(of.split)];
  Way &way = wayOf(edge);
  const Record record{-1, first->channel, first->micro_batch, is_send};
  if (Status status = begin(way); !status.ok())
    return status;
  Result result = count > 1 ? api.groupStart() : Result::success;
  if (result != Result::success)
    return fail(api.error(result, text(record)));
  auto works = [](Result result) {
    return result == Result::success || result == Result::in_progress;
  };
  for (size_t i = 0; i < count && works(result); ++i) {
    const Part &part = first[i];
    // A token says that what came before it is done: a byte does, too.
    auto bytes = part.data
                     ? static_cast<size_t>(
                           network.traffic.channels[size_t(part.channel)].bytes)
                     : 0;
    void *data = part.data;
    if (bytes == 0) {
      data = pointer(tokens.get() + (is_send ? 0 : kTokenBytes / 2));
      bytes = 1;
    }
    result =
        is_send
            ? api.send(data, bytes, DataType::uint8, 1, comm, way.stream.get())
            : api.recv(data, bytes, DataType::uint8, 0, comm, way.stream.get());
  }
  if (count > 1) {
    const Result ended = api.groupEnd();
    if (works(result))
      result = ended;
  }
  if (Status status = accept(comm, result, record); !status.ok())
    return status;
  return end(way, record, way.done.get());
}

Status Endpoint::send(int channel, int micro_batch, const void *data) {
  std::lock_guard<std::mutex> lock(mutex);
  if (Status status = ready(); !status.ok())
    return status;
  const int edge = network.routes.edge_of[size_t(channel)];
  const auto key = static_cast<size_t>(channel * network.traffic.micro_batches +
                                       micro_batch);
  std::vector<Part> &group = parts[size_t(edge)];
  group.push_back({channel, micro_batch, const_cast<void *>(data)});
  if (network.routes.sends_more[key])
    return Status();
  if (Status status = exchange(edge, true, group.data(), group.size());
      !status.ok())
    return status;
  const StreamHandle stream = wayOf(edge).stream.get();
  Status status;
  for (const Part &part : group)
    if (status.ok())
      status = driver(gpu->api.eventRecord(
          sent[static_cast<size_t>(part.channel *
                                       network.traffic.micro_batches +
                                   part.micro_batch)]
              .get(),
          stream));
  group.clear();
  return status;
}

Status Endpoint::recv(int channel, int micro_batch, void *data) {
  std::lock_guard<std::mutex> lock(mutex);
  if (Status status = ready(); !status.ok())
    return status;
  const int edge = network.routes.edge_of[size_t(channel)];
  std::vector<Part> &group = parts[size_t(edge)];
  group.push_back({channel, micro_batch, data});
  if (network.routes.receives_more[static_cast<size_t>(
          channel * network.traffic.micro_batches + micro_batch)])
    return Status();
  Status status = exchange(edge, false, group.data(), group.size());
  group.clear();
  return status.ok()
             ? driver(gpu->api.streamWaitEvent(attached->cudaQueue().stream(),
                                               wayOf(edge).done.get(), 0))
             : status;
}

Status Endpoint::waitSent(int channel, int micro_batch) {
  std::lock_guard<std::mutex> lock(mutex);
  if (Status status = ready(); !status.ok())
    return status;
  const cuda::EventHandle event =
      sent[static_cast<size_t>(channel * network.traffic.micro_batches +
                               micro_batch)]
          .get();
  return driver(
      gpu->api.streamWaitEvent(attached->cudaQueue().stream(), event, 0));
}

} // namespace partita::runtime::nccl
