//===- Order.cpp - The order in which samples are visited -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Order.h"

#include "runtime/data/Philox.h"

#include <utility>

namespace partita::data {

using runtime::Expected;
using runtime::Status;
using runtime::Tensor;

namespace {

/// What random numbers are for. Different purposes have different numbers.
enum class Purpose : uint32_t { shuffle = 0, draw = 1 };

/// A number from 0 to `bound - 1`, which is not 0, all equally likely.
uint64_t below(uint64_t bound, uint64_t index, uint64_t epoch, Purpose purpose,
               uint64_t seed) {
  // Lemire, "Fast Random Integer Generation in an Interval" (2019): of the 2^64
  // products, those are rejected that make some results likelier than others.
  const uint64_t rejected = -bound % bound;
  for (uint32_t attempt = 0;; ++attempt) {
    const std::array<uint32_t, 4> words =
        philox({uint32_t(index), uint32_t(index >> 32), uint32_t(epoch),
                uint32_t(purpose) << 31 | attempt},
               {uint32_t(seed), uint32_t(seed >> 32)});
    const uint64_t number = uint64_t(words[1]) << 32 | words[0];
    const unsigned __int128 product = (unsigned __int128)(number)*bound;
    if (uint64_t(product) >= rejected)
      return uint64_t(product >> 64);
  }
}

} // namespace

Expected<Order> Order::create(Kind kind, int64_t samples, uint64_t seed) {
  Order order;
  order.kind = kind;
  order.count = samples;
  order.seed = seed;
  if (samples < 0)
    return Status::error("there is no order of " + std::to_string(samples) +
                         " samples");
  if (kind != Kind::shuffled)
    return order;
  if (samples >= int64_t(1) << 32)
    return Status::error("cannot shuffle " + std::to_string(samples) +
                         " samples: there may be 4294967295; draw them "
                         "instead, or visit them in order");
  order.permutation = PARTITA_TRY(
      within("cannot shuffle " + std::to_string(samples) + " samples: ",
             Tensor::allocate(abi::DType::u32, {samples})));
  return order;
}

void Order::begin(int64_t epoch, const std::atomic<bool> *stop) {
  current = epoch;
  if (kind == Kind::shuffled)
    shuffle(stop);
}

void Order::shuffle(const std::atomic<bool> *stop) {
  constexpr int64_t kBetweenLooks = 1 << 16;
  auto *places = reinterpret_cast<uint32_t *>(permutation.mutableData());
  for (int64_t i = 0; i < count; ++i)
    places[i] = uint32_t(i);
  for (int64_t i = count - 1; i > 0; --i) {
    if (i % kBetweenLooks == 0 && stop && stop->load(std::memory_order_relaxed))
      return;
    std::swap(places[i],
              places[below(uint64_t(i) + 1, uint64_t(i), uint64_t(current),
                           Purpose::shuffle, seed)]);
  }
}

int64_t Order::at(int64_t position) const {
  switch (kind) {
  case Kind::inOrder:
    break;
  case Kind::shuffled:
    return reinterpret_cast<const uint32_t *>(permutation.data())[position];
  case Kind::drawn:
    return int64_t(below(uint64_t(count), uint64_t(position), uint64_t(current),
                         Purpose::draw, seed));
  }
  return position;
}

} // namespace partita::data
