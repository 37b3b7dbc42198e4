//===- Ends.h - Channels and collectives by number --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_COMM_ENDS_H
#define PARTITA_TEST_UNIT_COMM_ENDS_H

#include "runtime/comm/Communicator.h"

#include <functional>
#include <map>
#include <mutex>

namespace partita::test {

/// The ends of a communicator, each made when it is first used, for bytes of
/// the host. Threads of several devices may call it.
class Ends {
public:
  explicit Ends(runtime::Communicator &comm) : comm(comm) {}

  runtime::Sender &sender(int channel) {
    return get(senders, channel, [&] { return comm.sender(channel, {}); });
  }
  runtime::Receiver &receiver(int channel) {
    return get(receivers, channel, [&] { return comm.receiver(channel, {}); });
  }
  runtime::Participant &participant(int collective, int device) {
    return get(participants, std::pair(collective, device),
               [&] { return comm.participant(collective, device, {}); });
  }

  runtime::Status send(int channel, int micro_batch, const void *data,
                       int64_t bytes) {
    return sender(channel).send(micro_batch, static_cast<const uint8_t *>(data),
                                bytes);
  }
  runtime::Status recv(int channel, int micro_batch, void *data,
                       int64_t bytes) {
    return receiver(channel).receive(micro_batch, static_cast<uint8_t *>(data),
                                     bytes);
  }
  runtime::Status waitSent(int channel, int micro_batch) {
    return sender(channel).wait(micro_batch);
  }
  runtime::Status start(int collective, int device, int micro_batch,
                        const void *source, void *target) {
    return participant(collective, device)
        .start(micro_batch, static_cast<const uint8_t *>(source),
               static_cast<uint8_t *>(target));
  }
  runtime::Status finish(int collective, int device, int micro_batch) {
    return participant(collective, device).finish(micro_batch);
  }

private:
  template <typename End, typename Key, typename Make>
  End &get(std::map<Key, std::unique_ptr<End>> &ends, const Key &key,
           const Make &make) {
    std::lock_guard<std::mutex> lock(mutex);
    std::unique_ptr<End> &end = ends[key];
    if (!end)
      end = make();
    return *end;
  }

  runtime::Communicator &comm;
  std::mutex mutex;
  std::map<int, std::unique_ptr<runtime::Sender>> senders;
  std::map<int, std::unique_ptr<runtime::Receiver>> receivers;
  std::map<std::pair<int, int>, std::unique_ptr<runtime::Participant>>
      participants;
};

} // namespace partita::test

#endif // PARTITA_TEST_UNIT_COMM_ENDS_H
