//===- Staged.cpp - Bytes of devices through the host ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/local/Staged.h"

#include <vector>

namespace partita::runtime {
namespace {

using Buffer = std::vector<uint8_t>;

/// All that the queue was given is done.
Status finishQueue(Queue &queue) { return queue.synchronize(queue.record()); }

class StagedSender final : public Sender {
public:
  StagedSender(std::unique_ptr<Sender> end, const EndMemory &memory)
      : end(std::move(end)), queue(memory.device->queue()),
        buffers(size_t(memory.copies), Buffer(size_t(memory.bytes))) {}

  Status send(int micro_batch, const uint8_t *data, int64_t bytes) override {
    uint8_t *const host =
        data ? buffers[size_t(micro_batch) % buffers.size()].data() : nullptr;
    if (host)
      PARTITA_TRY(queue.copyOut(host, data, size_t(bytes)));
    // A token says that what came before it is done.
    PARTITA_TRY(finishQueue(queue));
    return end->send(micro_batch, host, bytes);
  }
  Status wait(int micro_batch) override { return end->wait(micro_batch); }

private:
  const std::unique_ptr<Sender> end;
  Queue &queue;
  std::vector<Buffer> buffers;
};

class StagedReceiver final : public Receiver {
public:
  StagedReceiver(std::unique_ptr<Receiver> end, const EndMemory &memory)
      : end(std::move(end)), queue(memory.device->queue()),
        buffers(size_t(memory.copies), {Buffer(size_t(memory.bytes)), {}}) {}

  Status receive(int micro_batch, uint8_t *data, int64_t bytes) override {
    if (!data)
      return end->receive(micro_batch, nullptr, bytes);
    Staging &host = buffers[size_t(micro_batch) % buffers.size()];
    if (host.read.queue)
      PARTITA_TRY(queue.synchronize(host.read));
    PARTITA_TRY(end->receive(micro_batch, host.bytes.data(), bytes));
    PARTITA_TRY(queue.copyIn(data, host.bytes.data(), size_t(bytes)));
    host.read = queue.record();
    return Status();
  }

private:
  struct Staging {
    Buffer bytes;
    Event read; ///< when the device has read the buffer
  };

  const std::unique_ptr<Receiver> end;
  Queue &queue;
  std::vector<Staging> buffers;
};

class StagedParticipant final : public Participant {
public:
  StagedParticipant(std::unique_ptr<Participant> part, const EndMemory &memory)
      : part(std::move(part)), queue(memory.device->queue()),
        from(size_t(memory.bytes)), to(size_t(memory.target_bytes)) {}

  Status start(int micro_batch, const uint8_t *source,
               uint8_t *target) override {
    PARTITA_TRY(queue.copyOut(from.data(), source, from.size()));
    PARTITA_TRY(finishQueue(queue));
    result = target;
    return part->start(micro_batch, from.data(), to.data());
  }
  Status finish(int micro_batch) override {
    PARTITA_TRY(part->finish(micro_batch));
    PARTITA_TRY(queue.copyIn(result, to.data(), to.size()));
    // The next collective may use the same bytes of the host.
    return finishQueue(queue);
  }

private:
  const std::unique_ptr<Participant> part;
  Queue &queue;
  Buffer from, to;
  uint8_t *result = nullptr; ///< the target of what is under way
};

} // namespace

std::unique_ptr<Sender> staged(std::unique_ptr<Sender> end,
                               const EndMemory &memory) {
  if (memory.isHost())
    return end;
  return std::make_unique<StagedSender>(std::move(end), memory);
}

std::unique_ptr<Receiver> staged(std::unique_ptr<Receiver> end,
                                 const EndMemory &memory) {
  if (memory.isHost())
    return end;
  return std::make_unique<StagedReceiver>(std::move(end), memory);
}

std::unique_ptr<Participant> staged(std::unique_ptr<Participant> part,
                                    const EndMemory &memory) {
  if (memory.isHost())
    return part;
  return std::make_unique<StagedParticipant>(std::move(part), memory);
}

} // namespace partita::runtime
