//===- LocalCollectives.cpp - Collectives between threads -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/local/LocalCollectives.h"

#include "runtime/base/Elements.h"
#include "runtime/comm/reduce/Group.h"

#include <cstring>
#include <string>

namespace partita::runtime {
namespace {

/// Sources up to so many bytes are copied into the seat. That saves a wait:
/// where devices spin, less time than it takes another core to fetch more than
/// a few lines of the copy; where they sleep, two changes of threads.
int64_t mostStaged(const Patience &patience) {
  return patience.spins ? 256 : 16384;
}

} // namespace

/// What others need to know of a device before they work, in the first line;
/// what they need afterwards; and what only the device itself needs.
struct alignas(64) LocalCollectives::Seat {
  struct Posted {
    const uint8_t *source;
    uint8_t *target;
    int micro_batch;
  };
  Counter came;
  Posted posted[2]; ///< by the round's parity
  alignas(64) Counter done;

  Seat *group = nullptr; ///< the first of `size` seats, in the group's order
  int rank = 0, size = 0, device = 0;
  int64_t staged_bytes = 0;
  std::unique_ptr<uint8_t[]> staged; ///< for two rounds; null: too many bytes
  /// Room for a pointer a device.
  std::unique_ptr<const uint8_t *[]> from;
  std::unique_ptr<uint8_t *[]> to;

  /// What device `other` of the group posted for the round that this one is in.
  const Posted &of(int other) const {
    return group[other].posted[came.count() & 1];
  }
};

struct LocalCollectives::Collective {
  CollectiveInfo info;
  Status status; ///< why it cannot be carried out
  CombineFunction combine = nullptr;
  std::vector<Seat *> seats; ///< by device
};

LocalCollectives::LocalCollectives(const std::vector<CollectiveInfo> &infos,
                                   const Patience &patience)
    : patience(patience) {
  for (const CollectiveInfo &info : infos) {
    Collective &made = collectives.emplace_back();
    made.info = info;
    made.status = checkCollective(info);
    if (!made.status.ok())
      continue;
    made.combine = combineFunction(info.dtype, info.reduction);
    for (const std::vector<int> &group : info.groups)
      count += group.size();
  }
  seats.reset(new Seat[count]);
  Seat *next = seats.get();
  for (Collective &made : collectives)
    if (made.status.ok())
      for (const std::vector<int> &group : made.info.groups) {
        seat(made, group, next);
        next += group.size();
      }
}

LocalCollectives::~LocalCollectives() = default;

void LocalCollectives::seat(Collective &of, const std::vector<int> &group,
                            Seat *first) const {
  for (size_t rank = 0; rank < group.size(); ++rank) {
    Seat &seat = first[rank];
    seat.group = first;
    seat.rank = int(rank);
    seat.size = int(group.size());
    seat.device = group[rank];
    if (const int64_t bytes = sourceBytes(of.info, seat.size);
        bytes <= mostStaged(patience)) {
      seat.staged_bytes = bytes;
      seat.staged.reset(new uint8_t[size_t(2 * bytes)]);
    }
    seat.from.reset(new const uint8_t *[group.size()]);
    seat.to.reset(new uint8_t *[group.size()]);
    if (of.seats.size() <= size_t(seat.device))
      of.seats.resize(size_t(seat.device) + 1);
    of.seats[size_t(seat.device)] = &seat;
  }
}

Expected<LocalCollectives::Seat *> LocalCollectives::seatOf(int collective,
                                                            int device) const {
  if (collective < 0 || size_t(collective) >= collectives.size())
    return Status::error("there is no such collective");
  const Collective &of = collectives[size_t(collective)];
  if (!of.status.ok())
    return of.status;
  if (device < 0 || size_t(device) >= of.seats.size() ||
      !of.seats[size_t(device)])
    return Status::error("device " + std::to_string(device) +
                         " is in none of its groups");
  return of.seats[size_t(device)];
}

Status LocalCollectives::start(int collective, int device, int micro_batch,
                               const void *source, void *target) {
  auto found = PARTITA_TRY(seatOf(collective, device));
  Seat &seat = *found;
  const uint32_t round = seat.came.count();
  if (!seat.done.reached(round))
    return Status::error("it was started again before it was finished");
  auto from = static_cast<const uint8_t *>(source);
  if (seat.staged && from) {
    uint8_t *copy = seat.staged.get() + ((round + 1) & 1) * seat.staged_bytes;
    std::memcpy(copy, from, size_t(seat.staged_bytes));
    from = copy;
  }
  seat.posted[(round + 1) & 1] = {from, static_cast<uint8_t *>(target),
                                  micro_batch};
  seat.came.advance();
  return Status();
}

Status LocalCollectives::finish(int collective, int device, int micro_batch) {
  auto found = PARTITA_TRY(seatOf(collective, device));
  Seat &seat = *found;
  if (seat.done.reached(seat.came.count()))
    return Status::error("it was not started");
  PARTITA_TRY(await(seat, &Seat::came, ""));
  for (int other = 0; other < seat.size; ++other)
    if (seat.of(other).micro_batch != micro_batch)
      return Status::error(
          "device " + std::to_string(seat.group[other].device) +
          " is at micro-batch " + std::to_string(seat.of(other).micro_batch));
  work(collectives[size_t(collective)], seat);
  seat.done.advance();
  if (seat.staged) // nobody reads what is not the seat's
    return Status();
  return await(seat, &Seat::done, " to do its share");
}

Status LocalCollectives::await(Seat &seat, Counter Seat::*counter,
                               const char *what) const {
  Deadline deadline(patience.timeout_s);
  const uint32_t round = seat.came.count();
  for (int other = 0; other < seat.size; ++other)
    switch (
        (seat.group[other].*counter).await(round, patience.spins, deadline)) {
    case Counter::Outcome::reached:
      break;
    case Counter::Outcome::aborted:
      return abortedError();
    case Counter::Outcome::late: {
      std::vector<int> missing;
      for (int late = other; late < seat.size; ++late)
        if (!(seat.group[late].*counter).reached(round))
          missing.push_back(seat.group[late].device);
      return Status::error(deadline.message() + " for " + listDevices(missing) +
                           what);
    }
    }
  return Status();
}

void LocalCollectives::work(const Collective &of, Seat &seat) const {
  const CollectiveInfo &info = of.info;
  const int size = seat.size;
  const int64_t part = partBytes(info), whole = rowBytes(info);
  uint8_t *target = seat.of(seat.rank).target;
  switch (info.kind) {
  case CollectiveKind::all_reduce: {
    // Its lines for all, or all of them for itself.
    auto [begin, end] = seat.staged ? std::pair(int64_t(0), whole)
                                    : shareOf(info, seat.rank, size);
    for (int other = 0; other < size; ++other) {
      seat.from[other] = seat.of(other).source + begin;
      seat.to[other] = seat.of(other).target + begin;
    }
    if (seat.staged)
      seat.to[0] = target;
    of.combine({seat.from.get(), size, seat.to.get(), seat.staged ? 1 : size,
                (end - begin) / elementBytes(info.dtype)});
    return;
  }
  case CollectiveKind::reduce_scatter:
    for (int64_t row = 0; row < info.rows; ++row) {
      for (int other = 0; other < size; ++other)
        seat.from[other] =
            seat.of(other).source + (row * size + seat.rank) * part;
      seat.to[0] = target + row * part;
      of.combine({seat.from.get(), size, seat.to.get(), 1, info.part});
    }
    return;
  case CollectiveKind::all_gather:
    for (int other = 0; other < size; ++other)
      copyRows(info.rows, size_t(part), seat.of(other).source, part,
               target + other * part, size * part);
    return;
  case CollectiveKind::all_to_all:
    for (int other = 0; other < size; ++other)
      copyRows(info.rows, size_t(part),
               seat.of(other).source + seat.rank * part, size * part,
               target + other * whole, part);
    return;
  case CollectiveKind::broadcast:
    copyRows(info.rows, size_t(part), seat.of(0).source, part, target, part);
    return;
  }
}

void LocalCollectives::abort() {
  for (size_t i = 0; i < count; ++i) {
    seats[i].came.abort();
    seats[i].done.abort();
  }
}

} // namespace partita::runtime
