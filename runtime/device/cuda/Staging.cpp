//===- Staging.cpp - Memory between the host and kernels ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Staging.h"

#include <algorithm>

namespace partita::runtime::cuda {

/// Makes do with fewer chunks where there is no memory for so many.
Status Staging::allocate(const std::shared_ptr<const Gpu> &gpu, size_t &count) {
  while (true) {
    auto made = allocateDevice(gpu, count * chunk_bytes,
                               "bytes on their way from and to the host");
    if (made) {
      there = std::move(*made);
      break;
    }
    if (count == kLeastChunks)
      return made.status();
    count = std::max(kLeastChunks, count / 2);
  }
  pinned = PARTITA_TRY(allocatePinned(gpu, count * chunk_bytes));
  return Status();
}

Status Staging::make(const std::shared_ptr<const Gpu> &gpu,
                     std::span<const size_t> copies, size_t largest) {
  constexpr size_t kAlignment = 256;
  chunk_bytes = std::clamp((largest + kAlignment - 1) / kAlignment * kAlignment,
                           kLeastChunk, kMostChunk);
  size_t count = 0;
  for (size_t bytes : copies)
    count += (bytes + chunk_bytes - 1) / chunk_bytes;
  count = std::clamp(count, kLeastChunks, kMostBytes / chunk_bytes);
  for (Stream *stream : {&host, &wire})
    *stream = PARTITA_TRY(createStream(gpu));
  PARTITA_TRY(allocate(gpu, count));
  for (size_t i = 0; i < count; ++i) {
    Chunk &chunk = chunks.emplace_back();
    chunk.pinned = static_cast<uint8_t *>(pinned.get()) + i * chunk_bytes;
    chunk.there = there.get() + i * chunk_bytes;
    for (GpuEvent *event : {&chunk.filled, &chunk.sent, &chunk.empty})
      *event = PARTITA_TRY(createEvent(gpu));
  }
  return Status();
}

} // namespace partita::runtime::cuda
