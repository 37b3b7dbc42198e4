//===- Transfers.h - Copies beside the queue --------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_TRANSFERS_H
#define PARTITA_RUNTIME_DEVICE_CUDA_TRANSFERS_H

#include "runtime/device/cuda/CudaInstance.h"

#include <array>
#include <functional>
#include <mutex>

namespace partita::runtime::cuda {

/// Copies between the host and a GPU that are done when the call returns:
/// weights, and the state of a run. They use a stream and pinned memory of
/// their own. Any thread may call them.
class Transfers {
public:
  /// The calling thread must use the GPU. `timeout_s`: deadline of every copy
  /// of a piece.
  static Expected<std::unique_ptr<Transfers>>
  create(std::shared_ptr<const Gpu> gpu, double timeout_s);

  Status upload(DeviceAddress to, const void *from, size_t bytes);
  /// Brings a device's part of rows of the host, and zeros where they end.
  Status uploadRows(DeviceAddress to, const uint8_t *from, const RowPart &part);
  Status download(void *to, DeviceAddress from, size_t bytes);
  Status clear(DeviceAddress to, size_t bytes);

  /// Waits until nothing is at work any more. False if that takes too long:
  /// then nothing that it uses may be given back.
  bool drain();

private:
  static constexpr size_t kChunks = 2, kChunkBytes = 4 << 20;
  struct Chunk {
    PinnedBuffer bytes;
    GpuEvent done;
  };

  Transfers(std::shared_ptr<const Gpu> gpu, double timeout_s)
      : gpu(std::move(gpu)), timeout_s(timeout_s) {}
  Status make();
  Status await(const Chunk &chunk);
  Status send(DeviceAddress to, size_t bytes,
              const std::function<void(uint8_t *, size_t, size_t)> &fill);

  const std::shared_ptr<const Gpu> gpu;
  const double timeout_s;
  std::mutex mutex;
  Stream stream;
  std::array<Chunk, kChunks> chunks;
};

} // namespace partita::runtime::cuda

#endif // PARTITA_RUNTIME_DEVICE_CUDA_TRANSFERS_H
