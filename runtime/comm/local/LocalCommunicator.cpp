//===- LocalCommunicator.cpp - Devices that are threads of one process ----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/local/LocalCommunicator.h"

#include "runtime/comm/Ends.h"
#include "runtime/comm/local/Staged.h"

#include <cstring>

namespace partita::runtime {
namespace {

class LocalSender final : public Sender {
public:
  LocalSender(LocalCommunicator &comm, int channel, const EndMemory &memory)
      : comm(comm), channel(channel), device(memory.device),
        is_host(memory.isHost()) {}

  Status send(int micro_batch, const uint8_t *data, int64_t bytes) override {
    if (is_host)
      return comm.send(channel, micro_batch, data, bytes);
    return comm.post(channel, micro_batch,
                     {data, bytes, device, device->queue().record()});
  }
  Status wait(int micro_batch) override {
    return device ? comm.waitSentOn(channel, micro_batch, device->queue())
                  : comm.waitSent(channel, micro_batch);
  }

private:
  LocalCommunicator &comm;
  const int channel;
  Device *const device;
  const bool is_host;
};

class LocalReceiver final : public Receiver {
public:
  LocalReceiver(LocalCommunicator &comm, int channel, const EndMemory &memory)
      : comm(comm), channel(channel), device(memory.device),
        is_host(memory.isHost()) {}

  /// From a device, or to one: on the receiver's queue. The sender's queue
  /// waits until the bytes are copied.
  Status receive(int micro_batch, uint8_t *data, int64_t bytes) override {
    auto message = PARTITA_TRY(comm.take(channel, micro_batch, bytes));
    const size_t count = size_t(bytes);
    if (is_host && !message.device) {
      if (count)
        std::memcpy(data, message.data, count);
      comm.release(channel, micro_batch);
      return Status();
    }
    Queue &queue = device->queue();
    PARTITA_TRY(queue.wait(message.ready));
    if (count)
      PARTITA_TRY(message.device ? queue.copyFrom(*message.device, data,
                                                  message.data, count)
                                 : queue.copyIn(data, message.data, count));
    return comm.releaseAfter(channel, micro_batch, queue.record());
  }
  Expected<const uint8_t *> borrow(int micro_batch, uint8_t *,
                                   int64_t bytes) override {
    auto message = PARTITA_TRY(comm.take(channel, micro_batch, bytes));
    return message.data;
  }
  void release(int micro_batch) override { comm.release(channel, micro_batch); }

private:
  LocalCommunicator &comm;
  const int channel;
  Device *const device;
  const bool is_host;
};

} // namespace

LocalCommunicator::LocalCommunicator(
    const std::vector<ChannelInfo> &channels, int micro_batches,
    double timeout_s, bool spin, const std::vector<CollectiveInfo> &collectives)
    : channels(channels), micro_batches(micro_batches),
      patience(timeout_s, spin), count(channels.size() * micro_batches),
      cells(new Cell[count]), collectives(collectives, patience) {}

std::unique_ptr<Sender> LocalCommunicator::sender(int channel,
                                                  const EndMemory &memory) {
  return std::make_unique<LocalSender>(*this, channel, memory);
}

std::unique_ptr<Receiver> LocalCommunicator::receiver(int channel,
                                                      const EndMemory &memory) {
  return std::make_unique<LocalReceiver>(*this, channel, memory);
}

std::unique_ptr<Participant>
LocalCommunicator::participant(int collective, int device,
                               const EndMemory &memory) {
  return staged(std::make_unique<GroupParticipant<LocalCommunicator>>(
                    *this, collective, device),
                memory);
}

Status LocalCommunicator::await(Counter &counter, uint32_t count) const {
  Deadline deadline(patience.timeout_s);
  switch (counter.await(count, patience.spins, deadline)) {
  case Counter::Outcome::reached:
    break;
  case Counter::Outcome::aborted:
    return abortedError();
  case Counter::Outcome::late:
    return Status::error(deadline.message());
  }
  return Status();
}

Status LocalCommunicator::send(int channel, int micro_batch, const void *data,
                               int64_t bytes) {
  return post(channel, micro_batch,
              {static_cast<const uint8_t *>(data), bytes, nullptr, {}});
}

Status LocalCommunicator::post(int channel, int micro_batch,
                               const Message &message) {
  Cell &cell = this->cell(channel, micro_batch);
  if (!cell.taken.reached(cell.posted.count()))
    return Status::error("it was sent again before the receiver took it");
  cell.message = message;
  cell.posted.advance();
  return Status();
}

Status LocalCommunicator::awaitPosted(Cell &cell, int64_t bytes) const {
  PARTITA_TRY(await(cell.posted, cell.taken.count() + 1));
  if (cell.message.bytes != bytes)
    return Status::error("got " + std::to_string(cell.message.bytes) +
                         " bytes instead of " + std::to_string(bytes));
  return Status();
}

Status LocalCommunicator::recv(int channel, int micro_batch, void *data,
                               int64_t bytes) {
  Cell &cell = this->cell(channel, micro_batch);
  PARTITA_TRY(awaitPosted(cell, bytes));
  if (bytes)
    std::memcpy(data, cell.message.data, static_cast<size_t>(bytes));
  cell.taken.advance();
  return Status();
}

Expected<Message> LocalCommunicator::take(int channel, int micro_batch,
                                          int64_t bytes) {
  Cell &cell = this->cell(channel, micro_batch);
  PARTITA_TRY(awaitPosted(cell, bytes));
  return cell.message;
}

void LocalCommunicator::release(int channel, int micro_batch) {
  Cell &cell = this->cell(channel, micro_batch);
  cell.taken.advance();
}

Status LocalCommunicator::releaseAfter(int channel, int micro_batch,
                                       const Event &read) {
  Cell &cell = this->cell(channel, micro_batch);
  cell.read = read.number;
  cell.reader.store(read.queue, std::memory_order_relaxed);
  cell.taken.advance();
  return Status();
}

/// `wait` waits for the event of the receiver, which is there meanwhile.
template <typename Wait>
Status LocalCommunicator::waitSent(int channel, int micro_batch,
                                   const Wait &wait) {
  Cell &cell = this->cell(channel, micro_batch);
  PARTITA_TRY(await(cell.taken, cell.posted.count()));
  if (!cell.reader.load(std::memory_order_relaxed))
    return Status();
  std::shared_lock<std::shared_mutex> lock(readers);
  Queue *const reader = cell.reader.load(std::memory_order_relaxed);
  const Status status = reader ? wait({reader, cell.read}) : Status();
  cell.reader.store(nullptr, std::memory_order_relaxed);
  return status;
}

Status LocalCommunicator::waitSent(int channel, int micro_batch) {
  return waitSent(channel, micro_batch, [](const Event &read) {
    return read.queue->synchronize(read);
  });
}

Status LocalCommunicator::waitSentOn(int channel, int micro_batch,
                                     Queue &queue) {
  return waitSent(channel, micro_batch,
                  [&](const Event &read) { return queue.wait(read); });
}

/// Senders of other sessions may come when the receiver is gone.
bool LocalCommunicator::detach(int device) {
  std::unique_lock<std::shared_mutex> lock(readers);
  for (size_t i = 0; i < count; ++i) {
    Queue *const reader = cells[i].reader.load(std::memory_order_relaxed);
    if (!reader ||
        channels[i / static_cast<size_t>(micro_batches)].target != device)
      continue;
    (void)reader->synchronize({reader, cells[i].read}); // or it has failed
    cells[i].reader.store(nullptr, std::memory_order_relaxed);
  }
  return true;
}

void LocalCommunicator::abort() {
  for (size_t i = 0; i < count; ++i) {
    cells[i].posted.abort();
    cells[i].taken.abort();
  }
  collectives.abort();
}

} // namespace partita::runtime
