//===- EndpointErrors.cpp - What an endpoint says of failures -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/nccl/Endpoint.h"

#include "runtime/comm/local/Counter.h"
#include "runtime/comm/reduce/Group.h"

#include <algorithm>

namespace partita::runtime::nccl {

Status Network::note(const Status &status) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    // What fails after an abort fails because of it: NCCL tells the devices
    // that wait of the communicators that are gone.
    if (first.ok() && !aborted)
      return first = status;
  }
  return reason();
}

Status Network::reason() {
  std::lock_guard<std::mutex> lock(mutex);
  return first.ok()
             ? abortedError()
             : Status::error(abortedError().message() + ": " + first.message());
}

std::string Network::text(const std::vector<int> &devices) const {
  if (process_of.empty())
    return listDevices(devices);
  std::string said;
  for (int device : devices)
    said += (said.empty() ? "device " : ", device ") + std::to_string(device) +
            " of process " + std::to_string(process_of[size_t(device)]);
  return said;
}

std::string Network::absentText() const {
  std::string text;
  if (absent)
    for (int process : absent())
      text += (text.empty() ? "; no answer from process " : ", process ") +
              std::to_string(process);
  return text;
}

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
uint32_t Endpoint::undone(const WorkStream &work) const {
  const uint32_t number =
      *static_cast<const volatile uint32_t *>(work.last_done.get());
  return (work.count - number) % kNumbers;
}

/// The first operation of each stream that is not done; empty: there is none.
std::string Endpoint::unfinished() const {
  std::string said;
  for (const WorkStream &work : streams) {
    const uint32_t behind = undone(work);
    if (behind == 0)
      continue;
    const uint32_t first = work.count - std::min(behind, kRecords) + 1;
    const Record &record = work.records[first % kRecords];
    said += (said.empty() ? "" : "; ") + text(record) + ", waiting for " +
            whoIsMissing(record);
  }
  return said;
}

std::string Endpoint::history() const {
  std::string said;
  for (const WorkStream &work : streams) {
    const uint32_t behind = undone(work);
    for (uint32_t back = std::min(work.count, kRecords); back > 0; --back) {
      const uint32_t number = work.count - back + 1;
      said += (said.empty() ? "the last operations of device " +
                                  std::to_string(index) + ": "
                            : "; ") +
              text(work.records[number % kRecords]) +
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
    network.abort_all();
  }
  abortAll();
  return failure;
}

Status Endpoint::stopped() {
  if (!failure.ok())
    return failure;
  if (network.aborted) {
    failure = network.reason();
    abortAll();
    return failure;
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
  // Its own thread is at work, or it is being aborted: then its streams come
  // to their end, too.
  if (!lock)
    return network.aborted ? network.reason() : Status();
  PARTITA_TRY(stopped());
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
  network.abort_all();
  abortAll();
  return said;
}

} // namespace partita::runtime::nccl
