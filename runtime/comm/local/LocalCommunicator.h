//===- LocalCommunicator.h - Threads of one process -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// There is a cell for each (channel, micro-batch), made in the constructor. The
// sender puts the address of its slot into the cell and increments `posted`.
// The receiver copies from that address, or reads there until it no longer
// needs the bytes, and then increments `taken`. Each waits for the other's
// counter.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_LOCAL_LOCALCOMMUNICATOR_H
#define PARTITA_RUNTIME_COMM_LOCAL_LOCALCOMMUNICATOR_H

#include "runtime/comm/Communicator.h"
#include "runtime/comm/local/Counter.h"
#include "runtime/comm/local/LocalCollectives.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace partita::runtime {

/// A message, where the sender has it.
struct Message {
  const uint8_t *data = nullptr;
  int64_t bytes = 0;
  Device *device = nullptr; ///< the owner of the memory; null: the host
  Event ready;              ///< when the bytes are there
};

class LocalCommunicator final : public Communicator {
public:
  /// `spin`: whether a device may spin. False if devices share cores.
  LocalCommunicator(const std::vector<ChannelInfo> &channels, int micro_batches,
                    double timeout_s, bool spin,
                    const std::vector<CollectiveInfo> &collectives = {});

  bool detach(int device) override;
  std::unique_ptr<Sender> sender(int channel, const EndMemory &memory) override;
  std::unique_ptr<Receiver> receiver(int channel,
                                     const EndMemory &memory) override;
  std::unique_ptr<Participant> participant(int collective, int device,
                                           const EndMemory &memory) override;
  void abort() override;

  //===--- What the ends call ---------------------------------------------===//

  /// Posts a message for the receiver of a micro-batch.
  Status post(int channel, int micro_batch, const Message &message);
  /// Blocks until the matching `post`, and returns its message. The bytes are
  /// valid until `release` or `releaseAfter`.
  Expected<Message> take(int channel, int micro_batch, int64_t bytes);
  void release(int channel, int micro_batch);
  /// Like release, when `read` has happened: the queue of the receiver still
  /// copies the bytes.
  Status releaseAfter(int channel, int micro_batch, const Event &read);
  /// Blocks until the receiver has released the bytes; then waits for its event
  /// itself, or lets the sender's queue wait.
  Status waitSent(int channel, int micro_batch);
  Status waitSentOn(int channel, int micro_batch, Queue &queue);
  /// Both for bytes of the host: posts, and takes, copies and releases them.
  Status send(int channel, int micro_batch, const void *data, int64_t bytes);
  Status recv(int channel, int micro_batch, void *data, int64_t bytes);
  Status start(int collective, int device, int micro_batch, const void *source,
               void *target) {
    return collectives.start(collective, device, micro_batch, source, target);
  }
  Status finish(int collective, int device, int micro_batch) {
    return collectives.finish(collective, device, micro_batch);
  }

private:
  struct alignas(64) Cell {
    Counter posted, taken;
    Message message;
    /// What the receiver's queue still does with the bytes that were taken.
    std::atomic<Queue *> reader = nullptr; ///< null: nothing
    uint64_t read = 0;                     ///< the number of its event
  };

  Cell &cell(int channel, int micro_batch) {
    return cells[static_cast<size_t>(channel) * micro_batches + micro_batch];
  }
  Status await(Counter &counter, uint32_t count) const;
  Status awaitPosted(Cell &cell, int64_t bytes) const;

  template <typename Wait>
  Status waitSent(int channel, int micro_batch, const Wait &wait);

  const std::vector<ChannelInfo> channels;
  const int micro_batches;
  const Patience patience;
  const size_t count;
  std::unique_ptr<Cell[]> cells;
  std::shared_mutex readers; ///< shared: they stay; alone: one of them goes
  LocalCollectives collectives;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_COMM_LOCAL_LOCALCOMMUNICATOR_H
