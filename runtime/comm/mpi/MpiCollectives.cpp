//===- MpiCollectives.cpp - Collectives between processes -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/mpi/MpiCollectives.h"

#include "runtime/base/Elements.h"
#include "runtime/comm/mpi/Layout.h"
#include "runtime/comm/mpi/Wait.h"
#include "runtime/comm/reduce/Combine.h"
#include "runtime/comm/reduce/Group.h"

#include <algorithm>
#include <limits>
#include <string>

namespace partita::runtime::mpi {

/// Bytes of a source, a target or what is received, from or for another device.
struct Collectives::Message {
  int peer = 0;       ///< device
  int64_t offset = 0; ///< bytes
  int64_t bytes = 0;
  Layout layout;
};

struct Collectives::Collective {
  CollectiveInfo info;
  Membership self;
  int tag = 0;
  CombineFunction combine = nullptr;

  std::vector<Message> sends;    ///< of the source
  std::vector<Message> receives; ///< into the target
  std::vector<Message> pieces;   ///< into `received`, to be combined
  std::vector<Message> shares;   ///< of the target: the combined share
  std::vector<Message> rest;     ///< into the target: the others' shares

  /// A request and the device at its other end, for each message under way.
  std::vector<MPI_Request> requests;
  std::vector<int> peers;
  std::vector<const uint8_t *> from; ///< room for a pointer a device
  const uint8_t *source = nullptr;
  uint8_t *target = nullptr;
  bool started = false;
};

Expected<std::unique_ptr<Collectives>>
Collectives::create(MPI_Comm comm, std::vector<CollectiveInfo> infos,
                    int first_tag, double timeout_s) {
  std::unique_ptr<Collectives> made(new Collectives);
  made->comm = comm;
  made->first_tag = first_tag;
  made->timeout = timeout_s;
  int size = 0;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &made->device);
  // What is made points into itself.
  made->collectives.reserve(infos.size());
  for (size_t i = 0; i < infos.size(); ++i)
    if (Status status = made->prepare(std::move(infos[i]), size); !status.ok())
      return Status::error("collective " + std::to_string(i) +
                           " of the plan: " + status.message());
  return made;
}

Status Collectives::prepare(CollectiveInfo info, int processes) {
  if (Status status = checkCollective(info); !status.ok())
    return status;
  for (const std::vector<int> &group : info.groups)
    for (int device : group)
      if (device >= processes)
        return Status::error("there is no device " + std::to_string(device) +
                             " among " + std::to_string(processes) +
                             " processes");
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  const int64_t part = partBytes(info), whole = rowBytes(info);
  if (info.rows > kMost || part > kMost)
    return Status::error("MPI counts rows and their bytes to 2^31 only");

  Collective &made = collectives.emplace_back();
  made.tag = first_tag + int(collectives.size()) - 1;
  made.combine = combineFunction(info.dtype, info.reduction);
  made.info = std::move(info);
  made.self = membership(made.info, device);
  const int size = made.self.size(), self = made.self.rank;
  made.from.resize(size_t(size));
  auto add = [&](std::vector<Message> &to, int rank, int64_t offset,
                 int64_t rows, int64_t bytes, int64_t stride) {
    // Both ends leave out what is empty.
    if (rows * bytes > 0)
      to.push_back({(*made.self.group)[size_t(rank)], offset, rows * bytes,
                    Layout::ofRows(rows, bytes, stride)});
  };
  const int64_t rows = made.info.rows;
  const auto [begin, end] =
      size ? shareOf(made.info, self, size) : std::pair<int64_t, int64_t>();
  int64_t pieces = 0;
  for (int rank = 0; rank < size; ++rank) {
    if (rank == self)
      continue;
    switch (made.info.kind) {
    case CollectiveKind::all_reduce: {
      auto [theirs, their_end] = shareOf(made.info, rank, size);
      add(made.sends, rank, theirs, 1, their_end - theirs, 0);
      add(made.pieces, rank, pieces, 1, end - begin, 0);
      add(made.shares, rank, begin, 1, end - begin, 0);
      add(made.rest, rank, theirs, 1, their_end - theirs, 0);
      pieces += end - begin;
      break;
    }
    case CollectiveKind::reduce_scatter:
      add(made.sends, rank, rank * part, rows, part, size * part);
      add(made.pieces, rank, pieces, rows, part, part);
      pieces += whole;
      break;
    case CollectiveKind::all_gather:
      add(made.sends, rank, 0, rows, part, part);
      add(made.receives, rank, rank * part, rows, part, size * part);
      break;
    case CollectiveKind::all_to_all:
      add(made.sends, rank, rank * part, rows, part, size * part);
      add(made.receives, rank, rank * whole, rows, part, part);
      break;
    case CollectiveKind::broadcast:
      if (self == 0)
        add(made.sends, rank, 0, rows, part, part);
      else if (rank == 0)
        add(made.receives, rank, 0, rows, part, part);
      break;
    }
  }
  // An all_reduce posts its second half when the first one is complete.
  const size_t most =
      made.sends.size() +
      std::max({made.receives.size(), made.pieces.size(), made.rest.size()}) +
      made.shares.size();
  made.requests.reserve(most);
  made.peers.reserve(most);
  received.resize(std::max(received.size(), size_t(pieces)));
  return Status();
}

Collectives::~Collectives() {
  for (Collective &of : collectives) {
    // After a failure only.
    for (MPI_Request &request : of.requests)
      if (request != MPI_REQUEST_NULL) {
        MPI_Cancel(&request);
        MPI_Request_free(&request);
      }
    for (auto *messages :
         {&of.sends, &of.receives, &of.pieces, &of.shares, &of.rest})
      for (Message &message : *messages)
        message.layout.free();
  }
}

Expected<Collectives::Collective *> Collectives::find(int collective,
                                                      int device) {
  if (collective < 0 || size_t(collective) >= collectives.size())
    return Status::error("there is no such collective");
  Collective &of = collectives[size_t(collective)];
  if (device != this->device || !of.self.group)
    return Status::error("device " + std::to_string(device) +
                         " is in none of its groups, or not of this process");
  return &of;
}

Status Collectives::send(Collective &of, const std::vector<Message> &messages,
                         const uint8_t *from) {
  for (const Message &message : messages) {
    MPI_Request &request = of.requests.emplace_back(MPI_REQUEST_NULL);
    of.peers.push_back(message.peer);
    if (int code = MPI_Isend(from + message.offset, message.layout.count,
                             message.layout.type, message.peer, of.tag, comm,
                             &request);
        code != MPI_SUCCESS)
      return failure("MPI_Isend", code);
    sent_bytes += message.bytes;
  }
  return Status();
}

Status Collectives::receive(Collective &of,
                            const std::vector<Message> &messages, uint8_t *to) {
  for (const Message &message : messages) {
    MPI_Request &request = of.requests.emplace_back(MPI_REQUEST_NULL);
    of.peers.push_back(message.peer);
    if (int code = MPI_Irecv(to + message.offset, message.layout.count,
                             message.layout.type, message.peer, of.tag, comm,
                             &request);
        code != MPI_SUCCESS)
      return failure("MPI_Irecv", code);
  }
  return Status();
}

Status Collectives::start(int collective, int device, const void *source,
                          void *target) {
  auto found = find(collective, device);
  if (!found)
    return found.status();
  Collective &of = **found;
  if (of.started)
    return Status::error("it was started again before it was finished");
  of.source = static_cast<const uint8_t *>(source);
  of.target = static_cast<uint8_t *>(target);
  of.started = true;
  if (Status status = receive(of, of.receives, of.target); !status.ok())
    return status;
  return send(of, of.sends, of.source);
}

Status Collectives::finish(int collective, int device) {
  auto found = find(collective, device);
  if (!found)
    return found.status();
  Collective &of = **found;
  if (!of.started)
    return Status::error("it was not started");
  if (Status status = receive(of, of.pieces, received.data()); !status.ok())
    return status;
  // The sends, too: the target of an all_reduce may be the source.
  if (Status status = wait(of); !status.ok())
    return status;
  computeOwn(of);
  if (Status status = send(of, of.shares, of.target); !status.ok())
    return status;
  if (Status status = receive(of, of.rest, of.target); !status.ok())
    return status;
  if (Status status = wait(of); !status.ok())
    return status;
  of.started = false;
  return Status();
}

Status Collectives::wait(Collective &of) {
  for (MPI_Request &request : of.requests)
    if (Status status = mpi::wait(request, timeout); !status.ok()) {
      std::vector<int> missing;
      for (size_t i = 0; i < of.requests.size(); ++i) {
        int done = 0;
        MPI_Test(&of.requests[i], &done, MPI_STATUS_IGNORE);
        if (!done && std::find(missing.begin(), missing.end(), of.peers[i]) ==
                         missing.end())
          missing.push_back(of.peers[i]);
      }
      std::sort(missing.begin(), missing.end());
      return missing.empty()
                 ? status
                 : Status::error(status.message() + ", waiting for " +
                                 listDevices(missing));
    }
  of.requests.clear();
  of.peers.clear();
  return Status();
}

void Collectives::computeOwn(Collective &of) {
  const CollectiveInfo &info = of.info;
  const int size = of.self.size(), self = of.self.rank;
  const int64_t part = partBytes(info), whole = rowBytes(info);
  switch (info.kind) {
  case CollectiveKind::all_reduce: {
    auto [begin, end] = shareOf(info, self, size);
    for (int rank = 0; rank < size; ++rank)
      of.from[size_t(rank)] =
          rank == self
              ? of.source + begin
              : received.data() + (rank - (rank > self)) * (end - begin);
    uint8_t *to = of.target + begin;
    of.combine({of.from.data(), size, &to, 1,
                (end - begin) / elementBytes(info.dtype)});
    return;
  }
  case CollectiveKind::reduce_scatter:
    for (int64_t row = 0; row < info.rows; ++row) {
      for (int rank = 0; rank < size; ++rank)
        of.from[size_t(rank)] =
            rank == self
                ? of.source + (row * size + self) * part
                : received.data() + (rank - (rank > self)) * whole + row * part;
      uint8_t *to = of.target + row * part;
      of.combine({of.from.data(), size, &to, 1, info.part});
    }
    return;
  case CollectiveKind::all_gather:
    copyRows(info.rows, size_t(part), of.source, part, of.target + self * part,
             size * part);
    return;
  case CollectiveKind::all_to_all:
    copyRows(info.rows, size_t(part), of.source + self * part, size * part,
             of.target + self * whole, part);
    return;
  case CollectiveKind::broadcast:
    if (self == 0)
      copyRows(info.rows, size_t(part), of.source, part, of.target, part);
    return;
  }
}

} // namespace partita::runtime::mpi
