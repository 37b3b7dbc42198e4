//===- LocalCommunicator.cpp - Devices that are threads of one process ----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/local/LocalCommunicator.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace partita::runtime {
namespace {

constexpr uint32_t kAborted = 1;
constexpr uint32_t kOne = 2;
/// About 50 us: longer than two threads of a pipeline are usually apart,
/// shorter than a time slice.
constexpr int kSpins = 2000;

int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

/// Sleeps until `word` is not `seen` any more, is woken, or `ns` have passed.
void sleepOn(std::atomic<uint32_t> &word, uint32_t seen, int64_t ns) {
  timespec time{static_cast<time_t>(ns / 1000000000),
                static_cast<long>(ns % 1000000000)};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, &time, nullptr, 0);
}

void wake(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1 << 30, nullptr, nullptr, 0);
}

std::string seconds(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", value);
  return text;
}

} // namespace

LocalCommunicator::LocalCommunicator(const std::vector<ChannelInfo> &channels,
                                     int micro_batches, double timeout_s,
                                     bool spin,
                                     const std::vector<CollectiveInfo> &)
    : micro_batches(micro_batches), timeout_s(timeout_s),
      spins(spin ? kSpins : 0), count(channels.size() * micro_batches),
      cells(new Cell[count]) {}

Status LocalCommunicator::await(Cell &cell, Word &word, uint32_t value) const {
  auto reached = [&](uint32_t seen) { return seen / kOne == value / kOne; };
  uint32_t seen = word.load(std::memory_order_acquire);
  for (int i = 0; i < spins && !reached(seen) && !(seen & kAborted); ++i) {
    __builtin_ia32_pause();
    seen = word.load(std::memory_order_acquire);
  }
  if (reached(seen))
    return Status();

  const int64_t deadline = now() + static_cast<int64_t>(timeout_s * 1e9);
  cell.sleepers.fetch_add(1);
  Status status;
  while (!reached(seen = word.load())) {
    if (seen & kAborted) {
      status = Status::error("stopped, because another device failed");
      break;
    }
    int64_t left = deadline - now();
    if (left <= 0) {
      status = Status::error("waited " + seconds(timeout_s) + " s");
      break;
    }
    sleepOn(word, seen, left);
  }
  cell.sleepers.fetch_sub(1);
  return status;
}

void LocalCommunicator::advance(Cell &cell, Word &word) {
  word.fetch_add(kOne);
  // Whoever counted itself as a sleeper before this load is woken; whoever does
  // so later sees the new count.
  if (cell.sleepers.load())
    wake(word);
}

Status LocalCommunicator::send(int channel, int micro_batch, const void *data,
                               int64_t bytes) {
  return post(channel, micro_batch,
              {static_cast<const uint8_t *>(data), bytes, nullptr, {}});
}

Status LocalCommunicator::post(int channel, int micro_batch,
                               const Parcel &parcel) {
  Cell &cell = this->cell(channel, micro_batch);
  if (cell.posted.load(std::memory_order_relaxed) / kOne !=
      cell.taken.load(std::memory_order_acquire) / kOne)
    return Status::error("it was sent again before the receiver took it");
  cell.parcel = parcel;
  advance(cell, cell.posted);
  return Status();
}

Status LocalCommunicator::awaitPosted(Cell &cell, int64_t bytes) const {
  uint32_t next = cell.taken.load(std::memory_order_relaxed) + kOne;
  if (Status status = await(cell, cell.posted, next); !status.ok())
    return status;
  if (cell.parcel.bytes != bytes)
    return Status::error("got " + std::to_string(cell.parcel.bytes) +
                         " bytes instead of " + std::to_string(bytes));
  return Status();
}

Status LocalCommunicator::recv(int channel, int micro_batch, void *data,
                               int64_t bytes) {
  Cell &cell = this->cell(channel, micro_batch);
  if (Status status = awaitPosted(cell, bytes); !status.ok())
    return status;
  if (bytes)
    std::memcpy(data, cell.parcel.data, static_cast<size_t>(bytes));
  advance(cell, cell.taken);
  return Status();
}

Expected<const uint8_t *> LocalCommunicator::borrow(int channel,
                                                    int micro_batch, uint8_t *,
                                                    int64_t bytes) {
  Cell &cell = this->cell(channel, micro_batch);
  if (Status status = awaitPosted(cell, bytes); !status.ok())
    return status;
  return cell.parcel.data;
}

Expected<Parcel> LocalCommunicator::take(int channel, int micro_batch,
                                         int64_t bytes) {
  Cell &cell = this->cell(channel, micro_batch);
  if (Status status = awaitPosted(cell, bytes); !status.ok())
    return status;
  return cell.parcel;
}

void LocalCommunicator::release(int channel, int micro_batch) {
  Cell &cell = this->cell(channel, micro_batch);
  advance(cell, cell.taken);
}

Status LocalCommunicator::waitSent(int channel, int micro_batch) {
  Cell &cell = this->cell(channel, micro_batch);
  return await(cell, cell.taken, cell.posted.load(std::memory_order_relaxed));
}

void LocalCommunicator::abort() {
  for (size_t i = 0; i < count; ++i)
    for (Word *word : {&cells[i].posted, &cells[i].taken}) {
      word->fetch_or(kAborted);
      wake(*word);
    }
}

} // namespace partita::runtime
