//===- Ends.h - Messages and collectives of a queue -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Their calls take addresses of the device, and only enqueue: what they wait
// for, the device's queue waits for, and what fails later, the queue tells.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_NCCL_ENDS_H
#define PARTITA_RUNTIME_COMM_NCCL_ENDS_H

#include "runtime/comm/Communicator.h"
#include "runtime/comm/nccl/Endpoint.h"

namespace partita::runtime::nccl {

class QueueSender final : public Sender {
public:
  QueueSender(Endpoint &endpoint, int channel)
      : endpoint(endpoint), channel(channel) {}

  Status send(int micro_batch, const uint8_t *data, int64_t) override {
    return endpoint.send(channel, micro_batch, data);
  }
  Status wait(int micro_batch) override {
    return endpoint.waitSent(channel, micro_batch);
  }

private:
  Endpoint &endpoint;
  const int channel;
};

class QueueReceiver final : public Receiver {
public:
  QueueReceiver(Endpoint &endpoint, int channel)
      : endpoint(endpoint), channel(channel) {}

  Status receive(int micro_batch, uint8_t *data, int64_t) override {
    return endpoint.recv(channel, micro_batch, data);
  }

private:
  Endpoint &endpoint;
  const int channel;
};

class QueueParticipant final : public Participant {
public:
  QueueParticipant(Endpoint &endpoint, int collective)
      : endpoint(endpoint), collective(collective) {}

  Status start(int micro_batch, const uint8_t *source,
               uint8_t *target) override {
    return endpoint.start(collective, micro_batch, source, target);
  }
  Status finish(int) override { return endpoint.finish(collective); }

private:
  Endpoint &endpoint;
  const int collective;
};

} // namespace partita::runtime::nccl

#endif // PARTITA_RUNTIME_COMM_NCCL_ENDS_H
