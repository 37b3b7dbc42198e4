//===- EngineTask.h - A call of cuDNN ---------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_ENGINETASK_H
#define PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_ENGINETASK_H

#include "runtime/device/cuda/LibraryCall.h"
#include "runtime/device/cuda/cudnn/EnginePlan.h"

#include <memory>
#include <utility>
#include <vector>

namespace partita::runtime::cuda::cudnn {

using Library = LibraryHandle<Api, Handle>;

/// The library's handle for a device. The calling thread must use the GPU.
/// `api` null: the library that is installed.
Expected<std::shared_ptr<Library>> openLibrary(const Api *api,
                                               std::shared_ptr<const Gpu> gpu);

/// Tells descriptors the library's handle for the device.
EnginePlan::ForDevice forDeviceOf(const Library &library);

/// The operands are those of the plan, in its order.
class EngineTask final : public LibraryTask {
public:
  /// `plan` has been made. `what`: the call, in words. `workspace`: where it
  /// may be.
  EngineTask(std::shared_ptr<Library> library, std::unique_ptr<EnginePlan> plan,
             const char *what, DeviceAddress workspace)
      : library(std::move(library)), plan(std::move(plan)), what(what),
        workspace(workspace) {}
  ~EngineTask() override;

  Status bind(const DeviceAddress *operands) override;
  Status enqueue(const DeviceAddress *operands,
                 StreamHandle stream) const override;

private:
  using Addresses = std::vector<DeviceAddress>;

  /// Null: the operands have never been bound.
  Descriptor packOf(const DeviceAddress *operands) const;

  const std::shared_ptr<Library> library;
  const std::unique_ptr<EnginePlan> plan;
  const char *const what;
  const DeviceAddress workspace;
  /// A variant pack for each place of the operands.
  std::vector<std::pair<Addresses, Descriptor>> packs;
};

} // namespace partita::runtime::cuda::cudnn

#endif // PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_ENGINETASK_H
