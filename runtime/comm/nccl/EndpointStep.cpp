//===- EndpointStep.cpp - What a GPU gives NCCL in a step -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/nccl/Endpoint.h"

#include "runtime/comm/reduce/Group.h"

#include <algorithm>

namespace partita::runtime::nccl {
namespace {

using cuda::addressOf;
using cuda::DeviceAddress;

DeviceAddress addressOf(const void *data) {
  return addressOf(static_cast<const uint8_t *>(data));
}
void *pointer(DeviceAddress address) { return cuda::pointerTo(address); }

bool isEmpty(const CollectiveInfo &info) {
  return info.rows == 0 || info.part == 0;
}

} // namespace

bool isScattered(const CollectiveInfo &info) {
  return info.rows > 1 && (info.kind == CollectiveKind::all_gather ||
                           info.kind == CollectiveKind::reduce_scatter ||
                           info.kind == CollectiveKind::all_to_all);
}

/// What the queue was given before comes before what follows in a stream.
Status Endpoint::begin(WorkStream &work) {
  const cuda::Api &api = gpu->api;
  for (cuda::Result result :
       {api.eventRecord(work.ready.get(), attached->cudaQueue().stream()),
        api.streamWaitEvent(work.stream.get(), work.ready.get(), 0)})
    PARTITA_TRY(driver(result));
  return Status();
}

Status Endpoint::end(WorkStream &work, const Record &record,
                     cuda::EventHandle done) {
  const cuda::Api &api = gpu->api;
  const uint32_t number = ++work.count;
  work.records[number % kRecords] = record;
  for (cuda::Result result :
       {api.eventRecord(done, work.stream.get()),
        api.memcpyDtoHAsync(work.last_done.get(),
                            numbers.get() +
                                number % kNumbers * sizeof(uint32_t),
                            sizeof(uint32_t), work.stream.get())})
    PARTITA_TRY(driver(result));
  return Status();
}

Status Endpoint::copy(DeviceAddress to, DeviceAddress from, int64_t bytes) {
  return to == from || bytes == 0
             ? Status()
             : driver(gpu->api.memcpyDtoDAsync(to, from,
                                               static_cast<size_t>(bytes),
                                               streams.front().stream.get()));
}

Status Endpoint::copyRows(int64_t rows, int64_t bytes, DeviceAddress to,
                          int64_t to_pitch, DeviceAddress from,
                          int64_t from_pitch) {
  if (std::max(to_pitch, from_pitch) > gpu->mostPitch()) {
    // Rows of such a length are few.
    for (int64_t row = 0; row < rows; ++row)
      PARTITA_TRY(copy(to + static_cast<DeviceAddress>(row * to_pitch),
                       from + static_cast<DeviceAddress>(row * from_pitch),
                       bytes));
    return Status();
  }
  cuda::Copy2D copy;
  copy.source_device = from;
  copy.source_pitch = static_cast<size_t>(from_pitch);
  copy.target_device = to;
  copy.target_pitch = static_cast<size_t>(to_pitch);
  copy.width = static_cast<size_t>(bytes);
  copy.height = static_cast<size_t>(rows);
  return driver(gpu->api.memcpy2DAsync(&copy, streams.front().stream.get()));
}

Status Endpoint::allToAll(CommHandle comm, const CollectiveInfo &info, int size,
                          int rank, const Record &record, DeviceAddress source,
                          DeviceAddress target) {
  const Api &api = *network.api;
  const int64_t whole = rowBytes(info);
  const StreamHandle stream = streams.front().stream.get();
  PARTITA_TRY(copy(target + static_cast<DeviceAddress>(rank * whole),
                   source + static_cast<DeviceAddress>(rank * whole), whole));
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
  const StreamHandle stream = streams.front().stream.get();
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
      PARTITA_TRY(copyRows(info.rows, part, at(scratch.get(), other * whole),
                           part, at(source, other * part), size * part));
    source = scratch.get();
  }
  Combination combination;
  if (combines(info.kind))
    combination = PARTITA_TRY(combinationOf(info.dtype, info.reduction));
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
    PARTITA_TRY(copyRows(info.rows, part, at(target, other * part), size * part,
                         at(gathered, other * whole), part));
  return Status();
}

Status Endpoint::start(int collective, int, int micro_batch, const void *source,
                       void *target) {
  std::lock_guard<std::mutex> lock(mutex);
  PARTITA_TRY(ready());
  const int split = network.routes.split_of[size_t(collective)];
  const Record record{collective, -1, micro_batch, false};
  WorkStream &work = streams.front();
  PARTITA_TRY(begin(work));
  PARTITA_TRY(perform(network.traffic.collectives[size_t(collective)], split,
                      *network.routes.group(split, index), record,
                      addressOf(source), addressOf(target)));
  return end(work, record, collective_done[size_t(collective)].get());
}

Status Endpoint::finish(int collective, int, int) {
  std::lock_guard<std::mutex> lock(mutex);
  PARTITA_TRY(ready());
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
  WorkStream &work = streamOf(edge);
  const Record record{-1, first->channel, first->micro_batch, is_send};
  PARTITA_TRY(begin(work));
  Result result = count > 1 ? api.groupStart() : Result::success;
  if (result != Result::success)
    return fail(api.error(result, text(record)));
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
    result = is_send ? api.send(data, bytes, DataType::uint8, 1, comm,
                                work.stream.get())
                     : api.recv(data, bytes, DataType::uint8, 0, comm,
                                work.stream.get());
  }
  if (count > 1) {
    const Result ended = api.groupEnd();
    if (works(result))
      result = ended;
  }
  PARTITA_TRY(accept(comm, result, record));
  return end(work, record, work.done.get());
}

Status Endpoint::send(int channel, int micro_batch, const void *data, int64_t) {
  std::lock_guard<std::mutex> lock(mutex);
  PARTITA_TRY(ready());
  const int edge = network.routes.edge_of[size_t(channel)];
  std::vector<Part> &group = parts[size_t(edge)];
  group.push_back({channel, micro_batch, const_cast<void *>(data)});
  if (network.routes.sends_more[network.traffic.keyOf(channel, micro_batch)])
    return Status();
  PARTITA_TRY(exchange(edge, true, group.data(), group.size()));
  const StreamHandle stream = streamOf(edge).stream.get();
  Status status;
  for (const Part &part : group)
    if (status.ok())
      status = driver(gpu->api.eventRecord(
          sent[network.traffic.keyOf(part.channel, part.micro_batch)].get(),
          stream));
  group.clear();
  return status;
}

Status Endpoint::recv(int channel, int micro_batch, void *data, int64_t) {
  std::lock_guard<std::mutex> lock(mutex);
  PARTITA_TRY(ready());
  const int edge = network.routes.edge_of[size_t(channel)];
  std::vector<Part> &group = parts[size_t(edge)];
  group.push_back({channel, micro_batch, data});
  if (network.routes.receives_more[network.traffic.keyOf(channel, micro_batch)])
    return Status();
  Status status = exchange(edge, false, group.data(), group.size());
  group.clear();
  return status.ok()
             ? driver(gpu->api.streamWaitEvent(attached->cudaQueue().stream(),
                                               streamOf(edge).done.get(), 0))
             : status;
}

Status Endpoint::waitSent(int channel, int micro_batch) {
  std::lock_guard<std::mutex> lock(mutex);
  PARTITA_TRY(ready());
  const cuda::EventHandle event =
      sent[network.traffic.keyOf(channel, micro_batch)].get();
  return driver(
      gpu->api.streamWaitEvent(attached->cudaQueue().stream(), event, 0));
}

} // namespace partita::runtime::nccl
