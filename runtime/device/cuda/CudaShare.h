//===- CudaShare.h - Memory of a GPU of several plans -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_CUDASHARE_H
#define PARTITA_RUNTIME_DEVICE_CUDA_CUDASHARE_H

#include "runtime/device/SharedDevices.h"
#include "runtime/device/cuda/Gpu.h"

#include <map>
#include <string>

namespace partita::runtime::cuda {

/// The arena of a device, and its states. Each plan has its own constants. A
/// device of an artifact with one plan has a share of its own.
class CudaShare final : public DeviceShare {
public:
  CudaShare(std::shared_ptr<const Gpu> gpu, DeviceBuffer arena)
      : arena(std::move(arena)), gpu(std::move(gpu)) {}
  void releaseUnread() override {}

  /// The bytes of a state, by name. The first device that asks gets bytes that
  /// nothing was written to, and `isNew`. The calling thread must use the GPU.
  Expected<DeviceAddress> state(const std::string &name, size_t bytes,
                                bool &isNew) {
    auto found = states.find(name);
    isNew = found == states.end();
    if (isNew) {
      auto made = allocateDevice(gpu, bytes, "the state '" + name + "'");
      if (!made)
        return made.status();
      found = states.emplace(name, std::move(*made)).first;
    }
    return found->second.get();
  }

  const DeviceBuffer arena;

private:
  const std::shared_ptr<const Gpu> gpu;
  std::map<std::string, DeviceBuffer> states;
};

} // namespace partita::runtime::cuda

#endif // PARTITA_RUNTIME_DEVICE_CUDA_CUDASHARE_H
