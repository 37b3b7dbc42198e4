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
#include <vector>

namespace partita::runtime::cuda {

/// The arena of a device, its states, and the workspace of library calls. Each
/// plan has its own constants. A device of an artifact with one plan has a
/// share of its own.
class CudaShare final : public DeviceShare {
public:
  CudaShare(std::shared_ptr<const Gpu> gpu, DeviceBuffer arena)
      : arena(std::move(arena)), gpu(std::move(gpu)) {}
  void releaseUnread() override {}

  /// The bytes of a state, by name. The first device that asks gets bytes that
  /// nothing was written to, and `isNew`. The calling thread must use the GPU.
  /// `on_host`: in the host's memory, where the GPU reads and writes them.
  Expected<DeviceAddress> state(const std::string &name, size_t bytes,
                                bool on_host, bool &isNew) {
    auto found = states.find(name);
    isNew = found == states.end();
    if (!isNew)
      return found->second.address;
    State made;
    if (on_host) {
      made.pinned = PARTITA_TRY(
          within("the state '" + name + "': ", allocatePinned(gpu, bytes)));
      made.address = addressOf(static_cast<uint8_t *>(made.pinned.get()));
    } else {
      made.buffer =
          PARTITA_TRY(allocateDevice(gpu, bytes, "the state '" + name + "'"));
      made.address = made.buffer.get();
    }
    return states.emplace(name, std::move(made)).first->second.address;
  }

  /// Scratch of library calls, which plans use one after another. The calling
  /// thread must use the GPU.
  Expected<DeviceAddress> workspace(size_t bytes) {
    if (!hasWorkspace(bytes)) {
      auto made = PARTITA_TRY(
          allocateDevice(gpu, bytes, "the workspace of library calls"));
      // Calls of other plans were made with the smaller ones.
      workspaces.push_back(std::move(made));
      workspace_bytes = bytes;
    }
    return workspaces.empty() ? DeviceAddress(0) : workspaces.back().get();
  }
  bool hasWorkspace(size_t bytes) const { return bytes <= workspace_bytes; }

  const DeviceBuffer arena;

private:
  const std::shared_ptr<const Gpu> gpu;
  /// One of the two.
  struct State {
    DeviceBuffer buffer;
    PinnedBuffer pinned;
    DeviceAddress address = 0;
  };
  std::map<std::string, State> states;
  std::vector<DeviceBuffer> workspaces;
  size_t workspace_bytes = 0; ///< of the last one
};

} // namespace partita::runtime::cuda

#endif // PARTITA_RUNTIME_DEVICE_CUDA_CUDASHARE_H
