//===- Transfers.cpp - Copies beside the queue ----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Transfers.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

namespace partita::runtime::cuda {
namespace {

constexpr char kCannot[] = "cannot copy between host and device";

} // namespace

Expected<std::unique_ptr<Transfers>>
Transfers::create(std::shared_ptr<const Gpu> gpu, double timeout_s) {
  std::unique_ptr<Transfers> self(new Transfers(std::move(gpu), timeout_s));
  PARTITA_TRY(self->make());
  return self;
}

Status Transfers::make() {
  stream = PARTITA_TRY(createStream(gpu));
  for (Chunk &chunk : chunks) {
    chunk.bytes = PARTITA_TRY(allocatePinned(gpu, kChunkBytes));
    chunk.done = PARTITA_TRY(createEvent(gpu));
  }
  return Status();
}

/// Until the last copy of the chunk is done.
Status Transfers::await(const Chunk &chunk) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  while (true) {
    const Result result = gpu->api.eventQuery(chunk.done.get());
    if (result != Result::not_ready)
      return gpu->api.check(result, kCannot);
    if (Clock::now() - begin > std::chrono::duration<double>(timeout_s)) {
      char text[96];
      std::snprintf(text, sizeof(text),
                    "waited %g s for a copy between host and device",
                    timeout_s);
      return Status::error(text);
    }
    std::this_thread::yield();
  }
}

/// `fill` writes bytes [begin, begin + count) of what is sent.
Status
Transfers::send(DeviceAddress to, size_t bytes,
                const std::function<void(uint8_t *, size_t, size_t)> &fill) {
  std::lock_guard<std::mutex> lock(mutex);
  PARTITA_TRY(gpu->use());
  const Api &api = gpu->api;
  size_t next = 0;
  for (size_t done = 0; done < bytes; done += kChunkBytes, ++next) {
    const size_t part = std::min(bytes - done, kChunkBytes);
    const Chunk &chunk = chunks[next % kChunks];
    PARTITA_TRY(await(chunk));
    fill(static_cast<uint8_t *>(chunk.bytes.get()), done, part);
    for (Result result :
         {api.memcpyHtoDAsync(to + done, chunk.bytes.get(), part, stream.get()),
          api.eventRecord(chunk.done.get(), stream.get())})
      PARTITA_TRY(api.check(result, kCannot));
  }
  for (const Chunk &chunk : chunks)
    PARTITA_TRY(await(chunk));
  return Status();
}

Status Transfers::upload(DeviceAddress to, const void *from, size_t bytes) {
  return send(to, bytes, [&](uint8_t *pinned, size_t begin, size_t count) {
    std::memcpy(pinned, static_cast<const uint8_t *>(from) + begin, count);
  });
}

Status Transfers::uploadRows(DeviceAddress to, const uint8_t *from,
                             const RowPart &part) {
  const auto row_bytes = static_cast<size_t>(part.bytes),
             there = static_cast<size_t>(part.there),
             first = static_cast<size_t>(part.first),
             pitch = static_cast<size_t>(part.pitch);
  return send(
      to, static_cast<size_t>(part.rows) * row_bytes,
      [&](uint8_t *pinned, size_t begin, size_t count) {
        while (count > 0) {
          const size_t row = begin / row_bytes, column = begin % row_bytes;
          const bool isThere = column < there;
          const size_t run =
              std::min(count, (isThere ? there : row_bytes) - column);
          if (isThere)
            std::memcpy(pinned, from + row * pitch + first + column, run);
          else
            std::memset(pinned, 0, run);
          pinned += run;
          begin += run;
          count -= run;
        }
      });
}

Status Transfers::download(void *to, DeviceAddress from, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  PARTITA_TRY(gpu->use());
  const Api &api = gpu->api;
  auto begin = [&](size_t at, const Chunk &chunk) {
    if (at >= bytes)
      return Status();
    for (Result result :
         {api.memcpyDtoHAsync(chunk.bytes.get(), from + at,
                              std::min(bytes - at, kChunkBytes), stream.get()),
          api.eventRecord(chunk.done.get(), stream.get())})
      PARTITA_TRY(api.check(result, kCannot));
    return Status();
  };
  PARTITA_TRY(begin(0, chunks[0]));
  size_t next = 0;
  for (size_t done = 0; done < bytes; done += kChunkBytes, ++next) {
    PARTITA_TRY(begin(done + kChunkBytes, chunks[(next + 1) % kChunks]));
    const Chunk &chunk = chunks[next % kChunks];
    PARTITA_TRY(await(chunk));
    std::memcpy(static_cast<uint8_t *>(to) + done, chunk.bytes.get(),
                std::min(bytes - done, kChunkBytes));
  }
  return Status();
}

Status Transfers::clear(DeviceAddress to, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  if (Status status = gpu->use(); !status.ok() || bytes == 0)
    return status;
  const Api &api = gpu->api;
  for (Result result : {api.memsetD8Async(to, 0, bytes, stream.get()),
                        api.eventRecord(chunks[0].done.get(), stream.get())})
    PARTITA_TRY(api.check(result, kCannot));
  return await(chunks[0]);
}

bool Transfers::drain() {
  std::lock_guard<std::mutex> lock(mutex);
  (void)gpu->use();
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  while (gpu->api.streamQuery(stream.get()) == Result::not_ready) {
    if (Clock::now() - begin >
        std::chrono::duration<double>(std::min(timeout_s, 5.0)))
      return false;
    std::this_thread::yield();
  }
  return true;
}

} // namespace partita::runtime::cuda
