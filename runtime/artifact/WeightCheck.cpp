//===- WeightCheck.cpp - Weights are what they were when compiled ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/artifact/PlanVerifier.h"

#include "runtime/base/Arena.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <system_error>
#include <thread>
#include <xxhash.h>

namespace partita::runtime {
namespace {

/// So many bytes are hashed before their pages are given back: little beside
/// what a plan holds, and enough that the other cores, which must forget these
/// pages too, are seldom interrupted.
constexpr size_t kWindow = 8 << 20;
/// Less is not worth another thread.
constexpr size_t kGrain = 8 << 20;

struct FreeState {
  void operator()(XXH3_state_t *state) const { XXH3_freeState(state); }
};

uint64_t hashReleasing(const uint8_t *data, size_t bytes) {
  std::unique_ptr<XXH3_state_t, FreeState> state(XXH3_createState());
  if (!state)
    return XXH3_64bits(data, bytes);
  XXH3_64bits_reset(state.get());
  for (size_t at = 0; at < bytes; at += kWindow) {
    size_t count = std::min(kWindow, bytes - at);
    XXH3_64bits_update(state.get(), data + at, count);
    releasePages(data + at, count);
  }
  return XXH3_64bits_digest(state.get());
}

} // namespace

std::optional<size_t> findChanged(const std::vector<WeightBytes> &weights,
                                  int threads) {
  // The largest first, so that none of them is left for the end.
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return weights[a].bytes > weights[b].bytes;
  });
  std::atomic<size_t> next = 0, first = weights.size();
  auto work = [&] {
    for (size_t at = next++; at < order.size(); at = next++) {
      const WeightBytes &weight = weights[order[at]];
      if (hashReleasing(weight.data, weight.bytes) == weight.hash)
        continue;
      // The first of several, whichever thread is faster.
      for (size_t known = first;
           order[at] < known && !first.compare_exchange_weak(known, order[at]);)
        ;
    }
  };
  size_t bytes = 0;
  for (const WeightBytes &weight : weights)
    bytes += weight.bytes;
  size_t helpers = std::min<size_t>({static_cast<size_t>(std::max(threads, 1)),
                                     weights.size(), bytes / kGrain + 1});
  std::vector<std::thread> started;
  try {
    while (started.size() + 1 < helpers)
      started.emplace_back(work);
  } catch (const std::system_error &) {
    // Then with as many as there are.
  }
  work();
  for (std::thread &thread : started)
    thread.join();
  return first < weights.size() ? std::optional<size_t>(first) : std::nullopt;
}

} // namespace partita::runtime
