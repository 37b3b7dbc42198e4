//===- Gpu.h - A GPU's context, and what must be given back -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_GPU_H
#define PARTITA_RUNTIME_DEVICE_CUDA_GPU_H

#include "runtime/device/cuda/machine/VisibleGpus.h"

#include <cstdint>
#include <memory>
#include <utility>

namespace partita::runtime::cuda {

/// Addresses of a GPU, as Device.h has them and as the driver has them.
inline DeviceAddress addressOf(const uint8_t *data) {
  return reinterpret_cast<DeviceAddress>(data);
}
inline uint8_t *pointerTo(DeviceAddress address) {
  return reinterpret_cast<uint8_t *>(address);
}

/// A GPU with its primary context, which all devices that use the GPU share.
class Gpu {
public:
  /// `number`: in the driver's order, from 0.
  static Expected<std::shared_ptr<const Gpu>> open(const Api &api, int number);
  ~Gpu();
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;

  /// Makes the calling thread use this GPU. Any thread must call it before
  /// other functions of the driver.
  Status use() const;

  /// Lets copies between this GPU and another one go straight from one to the
  /// other. Where the machine or the driver has no such way, the driver takes
  /// them through the host. Call it for both GPUs, before their first copy. The
  /// calling thread uses this GPU afterwards.
  Status reach(const Gpu &other) const;

  /// For messages, e.g. "GPU 0 (NVIDIA H100, sm_90)".
  std::string name() const;
  /// The same without its number: what is measured for one holds for all.
  std::string kind() const;

  std::string modelName() const { return facts.model; } ///< "NVIDIA H100"
  Result attribute(DeviceAttribute which, int &value) const;

  const Api &api;
  const int number;
  ContextHandle context() const { return handle; }
  int architecture() const { return facts.architecture; } ///< 90 for sm_90
  /// Bytes of shared memory that a block may have.
  int mostShared() const { return most_shared; }
  int64_t mostPitch() const { return most_pitch; }

private:
  Gpu(const Api &api, int number) : api(api), number(number) {}
  Status retain();

  Ordinal ordinal = 0;
  ContextHandle handle = nullptr;
  GpuFacts facts;
  int most_shared = 0, most_pitch = 0;
};

/// An object of the driver that is given back at the end.
template <typename Handle, Result (*Api::*Release)(Handle)> class Owned {
public:
  Owned() = default;
  Owned(std::shared_ptr<const Gpu> gpu, Handle handle)
      : gpu(std::move(gpu)), handle(handle) {}
  Owned(Owned &&other) noexcept
      : gpu(std::move(other.gpu)), handle(std::exchange(other.handle, {})) {}
  Owned &operator=(Owned &&other) noexcept {
    std::swap(gpu, other.gpu);
    std::swap(handle, other.handle);
    return *this;
  }
  ~Owned() {
    if (!handle)
      return;
    // After an error of the GPU nothing can be given back, nor told.
    (void)gpu->use();
    (void)(gpu->api.*Release)(handle);
  }

  Handle get() const { return handle; }
  /// Does not give it back: something may still use it.
  void abandon() { handle = {}; }

private:
  std::shared_ptr<const Gpu> gpu;
  Handle handle = {};
};

using DeviceBuffer = Owned<DeviceAddress, &Api::memFree>;
using PinnedBuffer = Owned<void *, &Api::memFreeHost>;
using Stream = Owned<StreamHandle, &Api::streamDestroy>;
using GpuEvent = Owned<EventHandle, &Api::eventDestroy>;
using Graph = Owned<GraphHandle, &Api::graphDestroy>;
using GraphExec = Owned<GraphExecHandle, &Api::graphExecDestroy>;
using Module = Owned<ModuleHandle, &Api::moduleUnload>;

/// The calling thread must use the GPU. A buffer of 0 bytes has the address 0.
/// The error for too little memory names `what`, and says what there is.
Expected<DeviceBuffer> allocateDevice(const std::shared_ptr<const Gpu> &gpu,
                                      size_t bytes, const std::string &what);
/// Memory of the host that the GPU reads and writes.
Expected<PinnedBuffer> allocatePinned(const std::shared_ptr<const Gpu> &gpu,
                                      size_t bytes);
Expected<Stream> createStream(const std::shared_ptr<const Gpu> &gpu);
Expected<GpuEvent> createEvent(const std::shared_ptr<const Gpu> &gpu,
                               bool timed = false);

} // namespace partita::runtime::cuda

#endif // PARTITA_RUNTIME_DEVICE_CUDA_GPU_H
