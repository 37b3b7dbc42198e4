//===- Ends.h - Ends whose calls are those of something shared --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A `Network` carries out the calls of many ends, which it tells apart by the
// number of their channel or collective. It must outlive them.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_ENDS_H
#define PARTITA_RUNTIME_COMM_ENDS_H

#include "runtime/comm/Communicator.h"

namespace partita::runtime {

template <typename Network> class ChannelSender final : public Sender {
public:
  ChannelSender(Network &network, int channel)
      : network(network), channel(channel) {}

  Status send(int micro_batch, const uint8_t *data, int64_t bytes) override {
    return network.send(channel, micro_batch, data, bytes);
  }
  Status wait(int micro_batch) override {
    return network.waitSent(channel, micro_batch);
  }

private:
  Network &network;
  const int channel;
};

template <typename Network> class ChannelReceiver final : public Receiver {
public:
  ChannelReceiver(Network &network, int channel)
      : network(network), channel(channel) {}

  Status receive(int micro_batch, uint8_t *data, int64_t bytes) override {
    return network.recv(channel, micro_batch, data, bytes);
  }

private:
  Network &network;
  const int channel;
};

template <typename Network> class GroupParticipant final : public Participant {
public:
  GroupParticipant(Network &network, int collective, int device)
      : network(network), collective(collective), device(device) {}

  Status start(int micro_batch, const uint8_t *source,
               uint8_t *target) override {
    return network.start(collective, device, micro_batch, source, target);
  }
  Status finish(int micro_batch) override {
    return network.finish(collective, device, micro_batch);
  }

private:
  Network &network;
  const int collective, device;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_COMM_ENDS_H
