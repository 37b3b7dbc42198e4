//===- Order.h - The order in which samples are visited ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Epochs and positions within them are counted from 0. Which sample stands at a
// position depends on the seed, the epoch and the number of samples, and on
// nothing else: not on threads, machines, the samples of a step, or what was
// visited before. So training can go on at any position.
//
// A shuffle is Fisher and Yates's: for i from the last position to 1, exchange
// the samples at i and at a random position from 0 to i. Random numbers are
// those of Philox4x32-10, with the seed as its key and i and the epoch as its
// counter; numbers below a bound are drawn by Lemire's method, without bias.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DATA_ORDER_H
#define PARTITA_RUNTIME_DATA_ORDER_H

#include "runtime/io/Tensor.h"

#include <atomic>
#include <cstdint>

namespace partita::data {

class Order {
public:
  enum class Kind {
    inOrder,  ///< sample i at position i
    shuffled, ///< every sample once in an epoch
    /// Each position has any sample, whatever the others have. An epoch has as
    /// many positions as there are samples. For a text's windows at every
    /// position, of which no epoch sees the end.
    drawn,
  };

  /// An order of `samples` samples, at no epoch yet. Only a shuffle takes
  /// memory, 4 bytes a sample. It fails for 2^32 samples and more, and if there
  /// is not enough memory.
  static runtime::Expected<Order> create(Kind kind, int64_t samples,
                                         uint64_t seed);

  /// Epochs are numbered below this.
  static constexpr int64_t kEpochs = int64_t(1) << 32;

  /// Goes to an epoch, at least 0 and below kEpochs. A shuffle is made here,
  /// and takes some 20 ns a sample. It ends early where `stop` becomes true;
  /// the order must then not be used until the next call. Allocates nothing.
  void begin(int64_t epoch, const std::atomic<bool> *stop = nullptr);

  int64_t samples() const { return count; }
  int64_t epoch() const { return current; }
  /// The sample at a position of the epoch, which is from 0 to samples() - 1.
  int64_t at(int64_t position) const;

private:
  Order() = default;
  void shuffle(const std::atomic<bool> *stop);

  Kind kind = Kind::inOrder;
  int64_t count = 0;
  uint64_t seed = 0;
  int64_t current = 0;
  runtime::Tensor permutation; ///< u32 [count], of a shuffle
};

} // namespace partita::data

#endif // PARTITA_RUNTIME_DATA_ORDER_H
