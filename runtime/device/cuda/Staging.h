//===- Staging.h - Memory between the host and kernels ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of one step are at work while the inputs of the next one come, and
// the outputs of the one before it go. Both use the same places of the arena.
// So bytes go through memory of the GPU that is theirs alone:
//
//   in:   host --(host)--> pinned --(wire)--> staging --(compute)--> arena
//   out:  arena --(compute)--> staging --(wire)--> pinned --(host)--> host
//
// In brackets is the stream of each part of the way. Only the copy between
// staging and arena is in the stream that computes, and it is short.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_STAGING_H
#define PARTITA_RUNTIME_DEVICE_CUDA_STAGING_H

#include "runtime/device/cuda/Gpu.h"

#include <span>
#include <vector>

namespace partita::runtime::cuda {

/// One direction. Chunks of memory are used one after another, again and again.
class Staging {
public:
  /// A part of the pinned memory and of the GPU's. Each event happens when a
  /// part of the way is done, in their order. After the last one the chunk may
  /// be used again.
  struct Chunk {
    uint8_t *pinned = nullptr;
    DeviceAddress there = 0;
    GpuEvent filled, sent, empty;
  };

  /// Makes streams and chunks: as many as the copies of one step fill, if there
  /// is memory for them, at most kMostBytes. `copies`: the bytes of each.
  /// `largest`: of those copies, and of all others. The calling thread must use
  /// the GPU.
  Status make(const std::shared_ptr<const Gpu> &gpu,
              std::span<const size_t> copies, size_t largest);

  size_t chunkBytes() const { return chunk_bytes; }
  /// The bytes of the GPU's memory.
  size_t bytes() const { return chunks.size() * chunk_bytes; }
  /// The next chunk, which its last user may still use.
  Chunk &take() { return chunks[next++ % chunks.size()]; }

  Stream host, wire;

private:
  static constexpr size_t kLeastChunk = size_t(64) << 10,
                          kMostChunk = size_t(1) << 20,
                          kMostBytes = size_t(64) << 20;
  static constexpr size_t kLeastChunks = 2;

  Status allocate(const std::shared_ptr<const Gpu> &gpu, size_t &count);

  size_t chunk_bytes = kLeastChunk;
  PinnedBuffer pinned;
  DeviceBuffer there;
  std::vector<Chunk> chunks;
  size_t next = 0;
};

} // namespace partita::runtime::cuda

#endif // PARTITA_RUNTIME_DEVICE_CUDA_STAGING_H
