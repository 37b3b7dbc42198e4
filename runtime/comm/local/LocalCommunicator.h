//===- LocalCommunicator.h - Threads of one process ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One cell for each (channel, micro-batch), made in the constructor. The sender
// puts the address of its slot into the cell and counts up `posted`; the
// receiver copies straight from there, or reads there until it needs the bytes
// no more, and counts up `taken`. Each waits for the other's counter: it spins
// for a short while, then sleeps on it (futex), so that waiting devices leave
// the cores to those that work. The counters go on over steps.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_LOCAL_LOCALCOMMUNICATOR_H
#define PARTITA_RUNTIME_COMM_LOCAL_LOCALCOMMUNICATOR_H

#include "runtime/comm/Communicator.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

namespace partita::runtime {

class LocalCommunicator final : public Communicator {
public:
  /// `spin`: whether a device may spin at all; false where devices share cores.
  LocalCommunicator(const std::vector<ChannelInfo> &channels, int micro_batches,
                    double timeout_s, bool spin,
                    const std::vector<CollectiveInfo> &collectives = {});

  Status send(int channel, int micro_batch, const void *data,
              int64_t bytes) override;
  Status recv(int channel, int micro_batch, void *data, int64_t bytes) override;
  Expected<const uint8_t *> borrow(int channel, int micro_batch, uint8_t *data,
                                   int64_t bytes) override;
  bool carriesDevices() const override { return true; }
  Status post(int channel, int micro_batch, const Parcel &parcel) override;
  Expected<Parcel> take(int channel, int micro_batch, int64_t bytes) override;
  void release(int channel, int micro_batch) override;
  Status waitSent(int channel, int micro_batch) override;
  void abort() override;

private:
  /// A count in the upper 31 bits; the lowest bit is set by `abort`, so that a
  /// waiter sees the word change.
  using Word = std::atomic<uint32_t>;
  struct alignas(64) Cell {
    Word posted = 0;
    Word taken = 0;
    std::atomic<uint32_t> sleepers = 0;
    Parcel parcel;
  };

  Cell &cell(int channel, int micro_batch) {
    return cells[static_cast<size_t>(channel) * micro_batches + micro_batch];
  }
  Status await(Cell &cell, Word &word, uint32_t count) const;
  Status awaitPosted(Cell &cell, int64_t bytes) const;
  static void advance(Cell &cell, Word &word);

  const int micro_batches;
  const double timeout_s;
  const int spins;
  const size_t count;
  std::unique_ptr<Cell[]> cells;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_COMM_LOCAL_LOCALCOMMUNICATOR_H
