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
#include "runtime/comm/reduce/Group.h"

#include <algorithm>
#include <limits>
#include <string>

namespace partita::runtime::mpi {

/// Bytes of a source, a target or what is received, from or for a device of
/// another process.
struct Collectives::Message {
  int peer = 0; ///< device
  int tag = 0;
  int64_t offset = 0; ///< bytes
  int64_t bytes = 0;
  Layout layout;
};

/// A device of this process in one collective.
struct Collectives::Seat {
  const Collective *of = nullptr;
  int device = 0;
  int rank = 0; ///< in the group

  std::vector<Message> sends;    ///< of the source
  std::vector<Message> receives; ///< into the target
  std::vector<Message> pieces;   ///< into the device's memory, to be combined
  std::vector<Message> shares;   ///< of the target: the combined share
  std::vector<Message> rest;     ///< into the target: the others' shares
  Pieces *memory = nullptr;      ///< of the device
  uint8_t *arrived = nullptr;    ///< where the pieces are

  /// By rank in the group: the seats of devices of this process, others null.
  std::vector<Seat *> group;
  std::vector<int64_t> piece_at; ///< by rank: where its piece lies, in bytes

  /// A request and the device at its other end, for each message under way.
  std::vector<MPI_Request> requests;
  std::vector<int> peers;
  std::vector<const uint8_t *> from; ///< room for a pointer a device
  std::vector<uint8_t *> to;         ///< likewise
  const uint8_t *source = nullptr;
  uint8_t *target = nullptr;
  bool started = false;

  Counter came, done;
};

struct Collectives::Collective {
  CollectiveInfo info;
  int tag = 0; ///< the first one
  CombineFunction combine = nullptr;
  std::vector<std::unique_ptr<Seat>> seats; ///< by the device's place here
};

Collectives::Collectives(MPI_Comm comm, const Placement &placement,
                         const Patience &patience,
                         const std::atomic<bool> &stopped, Progress &progress)
    : comm(comm), placement(placement), stopped(stopped), progress(progress),
      patience(patience) {
  MPI_Comm_rank(comm, &rank);
  pieces.resize(placement.devicesOf(rank).size());
}

int64_t Collectives::tagsEach(const Placement &placement) {
  const int64_t most = placement.mostDevices();
  return most * most;
}

Expected<std::unique_ptr<Collectives>>
Collectives::create(MPI_Comm comm, const Placement &placement,
                    const std::vector<CollectiveInfo> &infos, int first_tag,
                    const Patience &patience, const std::atomic<bool> &stopped,
                    Progress &progress) {
  std::unique_ptr<Collectives> made(
      new Collectives(comm, placement, patience, stopped, progress));
  made->first_tag = first_tag;
  for (size_t i = 0; i < infos.size(); ++i)
    PARTITA_TRY(within("collective " + std::to_string(i) + " of the plan: ",
                       made->prepare(infos[i])));
  // Not filled: pages that nothing uses take no memory.
  for (Pieces &each : made->pieces) {
    each.early.reset(new uint8_t[size_t(each.bytes)]);
    each.late.reset(new uint8_t[size_t(each.bytes)]);
  }
  return made;
}

Status Collectives::prepare(const CollectiveInfo &info) {
  PARTITA_TRY(checkCollective(info));
  for (const std::vector<int> &group : info.groups)
    for (int device : group)
      if (device >= placement.devices())
        return Status::error("there is no device " + std::to_string(device) +
                             " among " + std::to_string(placement.devices()));
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  if (info.rows > kMost || partBytes(info) > kMost)
    return Status::error("MPI counts rows and their bytes to 2^31 only");

  Collective &made = *collectives.emplace_back(std::make_unique<Collective>());
  made.tag =
      first_tag + int((int64_t(collectives.size()) - 1) * tagsEach(placement));
  made.combine = combineFunction(info.dtype, info.reduction);
  made.info = info;
  made.seats.resize(pieces.size());
  for (const std::vector<int> &group : made.info.groups) {
    std::vector<Seat *> here(group.size(), nullptr);
    for (size_t rank = 0; rank < group.size(); ++rank) {
      const int device = group[rank];
      if (placement.processOf(device) != this->rank)
        continue;
      const auto place = size_t(placement.placeOf(device));
      auto seat = std::make_unique<Seat>();
      seat->of = &made;
      seat->device = device;
      seat->rank = int(rank);
      seat->memory = &pieces[place];
      here[rank] = seat.get();
      made.seats[place] = std::move(seat);
    }
    for (Seat *seat : here)
      if (seat) {
        seat->group = here;
        prepareMessages(made, *seat);
      }
  }
  return Status();
}

void Collectives::prepareMessages(const Collective &of, Seat &seat) {
  const CollectiveInfo &info = of.info;
  const std::vector<int> &group = *membership(info, seat.device).group;
  const int size = int(group.size()), self = seat.rank;
  const int64_t rows = info.rows, part = partBytes(info),
                whole = rowBytes(info);
  seat.from.resize(group.size());
  seat.to.resize(group.size());
  seat.piece_at.resize(group.size());
  const int most = placement.mostDevices();
  auto add = [&](std::vector<Message> &to, bool sends, int rank, int64_t offset,
                 int64_t rows, int64_t bytes, int64_t stride) {
    if (rows * bytes == 0)
      return; // both ends leave it out
    const int peer = group[size_t(rank)];
    int from_place = placement.placeOf(seat.device);
    int to_place = placement.placeOf(peer);
    if (!sends)
      std::swap(from_place, to_place);
    to.push_back({peer, of.tag + from_place * most + to_place, offset,
                  rows * bytes, Layout::ofRows(rows, bytes, stride)});
  };
  const auto [begin, end] = shareOf(info, self, size);
  int64_t bytes = 0; // of the pieces so far
  for (int rank = 0; rank < size; ++rank) {
    if (seat.group[size_t(rank)])
      continue; // itself, or reached without a message
    seat.piece_at[size_t(rank)] = bytes;
    switch (info.kind) {
    case CollectiveKind::all_reduce: {
      const auto [theirs, their_end] = shareOf(info, rank, size);
      add(seat.sends, true, rank, theirs, 1, their_end - theirs, 0);
      add(seat.pieces, false, rank, bytes, 1, end - begin, 0);
      add(seat.shares, true, rank, begin, 1, end - begin, 0);
      add(seat.rest, false, rank, theirs, 1, their_end - theirs, 0);
      bytes += end - begin;
      break;
    }
    case CollectiveKind::reduce_scatter:
      add(seat.sends, true, rank, rank * part, rows, part, size * part);
      add(seat.pieces, false, rank, bytes, rows, part, part);
      bytes += whole;
      break;
    case CollectiveKind::all_gather:
      add(seat.sends, true, rank, 0, rows, part, part);
      add(seat.receives, false, rank, rank * part, rows, part, size * part);
      break;
    case CollectiveKind::all_to_all:
      add(seat.sends, true, rank, rank * part, rows, part, size * part);
      add(seat.receives, false, rank, rank * whole, rows, part, part);
      break;
    case CollectiveKind::broadcast:
      if (self == 0)
        add(seat.sends, true, rank, 0, rows, part, part);
      else if (rank == 0)
        add(seat.receives, false, rank, 0, rows, part, part);
      break;
    }
  }
  // An all_reduce posts its second half when the first one is complete.
  const size_t most_messages =
      seat.sends.size() +
      std::max({seat.receives.size(), seat.pieces.size(), seat.rest.size()}) +
      seat.shares.size();
  seat.requests.reserve(most_messages);
  seat.peers.reserve(most_messages);
  seat.memory->bytes = std::max(seat.memory->bytes, bytes);
}

Collectives::~Collectives() {
  for (const std::unique_ptr<Collective> &of : collectives)
    for (const std::unique_ptr<Seat> &seat : of->seats) {
      if (!seat)
        continue;
      // After a failure only.
      for (MPI_Request &request : seat->requests)
        if (request != MPI_REQUEST_NULL) {
          MPI_Cancel(&request);
          MPI_Request_free(&request);
        }
      for (auto *messages : {&seat->sends, &seat->receives, &seat->pieces,
                             &seat->shares, &seat->rest})
        for (Message &message : *messages)
          message.layout.free();
    }
}

Expected<Collectives::Seat *> Collectives::find(int collective, int device) {
  if (collective < 0 || size_t(collective) >= collectives.size())
    return Status::error("there is no such collective");
  Seat *seat = nullptr;
  if (device >= 0 && device < placement.devices() &&
      placement.processOf(device) == rank)
    seat = collectives[size_t(collective)]
               ->seats[size_t(placement.placeOf(device))]
               .get();
  if (!seat)
    return Status::error("device " + std::to_string(device) +
                         " is in none of its groups, or not of this process");
  return seat;
}

Status Collectives::send(Seat &seat, const std::vector<Message> &messages,
                         const uint8_t *from) {
  for (const Message &message : messages) {
    MPI_Request &request = seat.requests.emplace_back(MPI_REQUEST_NULL);
    seat.peers.push_back(message.peer);
    if (int code = MPI_Isend(
            from + message.offset, message.layout.count, message.layout.type,
            placement.processOf(message.peer), message.tag, comm, &request);
        code != MPI_SUCCESS)
      return failure("MPI_Isend", code);
    sent_bytes.fetch_add(message.bytes, std::memory_order_relaxed);
  }
  return Status();
}

Status Collectives::receive(Seat &seat, const std::vector<Message> &messages,
                            uint8_t *to) {
  for (const Message &message : messages) {
    MPI_Request &request = seat.requests.emplace_back(MPI_REQUEST_NULL);
    seat.peers.push_back(message.peer);
    if (int code = MPI_Irecv(
            to + message.offset, message.layout.count, message.layout.type,
            placement.processOf(message.peer), message.tag, comm, &request);
        code != MPI_SUCCESS)
      return failure("MPI_Irecv", code);
  }
  return Status();
}

Status Collectives::start(int collective, int device, const void *source,
                          void *target) {
  auto found = PARTITA_TRY(find(collective, device));
  Seat &seat = *found;
  if (seat.started)
    return Status::error("it was started again before it was finished");
  seat.source = static_cast<const uint8_t *>(source);
  seat.target = static_cast<uint8_t *>(target);
  seat.started = true;
  progress.posted();
  seat.came.advance();
  PARTITA_TRY(receive(seat, seat.receives, seat.target));
  seat.arrived = nullptr;
  if (!seat.memory->user && !seat.pieces.empty()) {
    seat.memory->user = &seat;
    seat.arrived = seat.memory->early.get();
    PARTITA_TRY(receive(seat, seat.pieces, seat.arrived));
  }
  return send(seat, seat.sends, seat.source);
}

Status Collectives::finish(int collective, int device) {
  auto found = PARTITA_TRY(find(collective, device));
  Seat &seat = *found;
  if (!seat.started)
    return Status::error("it was not started");
  if (!seat.arrived) {
    seat.arrived = seat.memory->late.get();
    PARTITA_TRY(receive(seat, seat.pieces, seat.arrived));
  }
  // The sends, too: the target of an all_reduce may be the source.
  PARTITA_TRY(wait(seat));
  PARTITA_TRY(awaitNeighbours(seat, &Seat::came, ""));
  computeOwn(seat);
  if (seat.memory->user == &seat)
    seat.memory->user = nullptr;
  // Its share is in the targets of its neighbours, and it reads their sources
  // no more.
  seat.done.advance();
  PARTITA_TRY(send(seat, seat.shares, seat.target));
  PARTITA_TRY(receive(seat, seat.rest, seat.target));
  PARTITA_TRY(wait(seat));
  PARTITA_TRY(awaitNeighbours(seat, &Seat::done, " to do its share"));
  seat.started = false;
  progress.waited();
  return Status();
}

Status Collectives::wait(Seat &seat) {
  Progress::Polling polling(progress);
  for (MPI_Request &request : seat.requests)
    if (Status status = mpi::wait(request, patience, &stopped); !status.ok()) {
      if (stopped)
        return status;
      std::vector<int> missing;
      for (size_t i = 0; i < seat.requests.size(); ++i) {
        int done = 0;
        MPI_Test(&seat.requests[i], &done, MPI_STATUS_IGNORE);
        if (!done && std::find(missing.begin(), missing.end(), seat.peers[i]) ==
                         missing.end())
          missing.push_back(seat.peers[i]);
      }
      std::sort(missing.begin(), missing.end());
      return missing.empty()
                 ? status
                 : Status::error(status.message() + ", waiting for " +
                                 placement.text(missing));
    }
  seat.requests.clear();
  seat.peers.clear();
  return Status();
}

Status Collectives::awaitNeighbours(Seat &seat, Counter Seat::*counter,
                                    const char *what) {
  Deadline deadline(patience.timeout_s + kNeighbourSlack);
  const uint32_t round = seat.came.count();
  for (Seat *other : seat.group)
    if (other)
      switch ((other->*counter).await(round, /*spins=*/0, deadline)) {
      case Counter::Outcome::reached:
        break;
      case Counter::Outcome::aborted:
        return abortedError();
      case Counter::Outcome::late:
        return Status::error(deadline.message() + " for " +
                             listDevices({other->device}) + what);
      }
  return Status();
}

void Collectives::computeOwn(Seat &seat) {
  const CollectiveInfo &info = seat.of->info;
  const int size = int(seat.group.size()), self = seat.rank;
  const int64_t part = partBytes(info), whole = rowBytes(info);
  /// What is combined of a device: at `offset` of its source, or at `there` of
  /// the piece that arrived.
  auto gather = [&](int64_t offset, int64_t there) {
    for (size_t rank = 0; rank < seat.group.size(); ++rank)
      seat.from[rank] = seat.group[rank]
                            ? seat.group[rank]->source + offset
                            : seat.arrived + seat.piece_at[rank] + there;
  };
  switch (info.kind) {
  case CollectiveKind::all_reduce: {
    const auto [begin, end] = shareOf(info, self, size);
    gather(begin, 0);
    int targets = 0;
    for (Seat *other : seat.group)
      if (other)
        seat.to[size_t(targets++)] = other->target + begin;
    seat.of->combine({seat.from.data(), size, seat.to.data(), targets,
                      (end - begin) / elementBytes(info.dtype)});
    return;
  }
  case CollectiveKind::reduce_scatter:
    for (int64_t row = 0; row < info.rows; ++row) {
      gather((row * size + self) * part, row * part);
      seat.to[0] = seat.target + row * part;
      seat.of->combine({seat.from.data(), size, seat.to.data(), 1, info.part});
    }
    return;
  case CollectiveKind::all_gather:
    for (int rank = 0; rank < size; ++rank)
      if (const Seat *other = seat.group[size_t(rank)])
        copyRows(info.rows, size_t(part), other->source, part,
                 seat.target + rank * part, size * part);
    return;
  case CollectiveKind::all_to_all:
    for (int rank = 0; rank < size; ++rank)
      if (const Seat *other = seat.group[size_t(rank)])
        copyRows(info.rows, size_t(part), other->source + self * part,
                 size * part, seat.target + rank * whole, part);
    return;
  case CollectiveKind::broadcast:
    if (const Seat *first = seat.group[0])
      copyRows(info.rows, size_t(part), first->source, part, seat.target, part);
    return;
  }
}

void Collectives::wake() {
  for (const std::unique_ptr<Collective> &of : collectives)
    for (const std::unique_ptr<Seat> &seat : of->seats)
      if (seat) {
        seat->came.abort();
        seat->done.abort();
      }
}

} // namespace partita::runtime::mpi
