//===- ConvTask.h - A convolution by cuDNN ----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_CONVTASK_H
#define PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_CONVTASK_H

#include "runtime/device/cuda/LibraryHandle.h"
#include "runtime/device/cuda/LibraryTask.h"
#include "runtime/device/cuda/cudnn/ConvPlan.h"

#include <array>
#include <memory>
#include <utility>

namespace partita::runtime::cuda::cudnn {

using Library = LibraryHandle<Api, Handle>;

/// The library's handle for a device. The calling thread must use the GPU.
/// `api` null: the library that is installed.
Expected<std::shared_ptr<Library>> openLibrary(const Api *api,
                                               std::shared_ptr<const Gpu> gpu);

/// Operands: x, weights, result, and then the addend and the bias, if there
/// are.
class ConvTask final : public LibraryTask {
public:
  /// Chooses the engine. `workspace`: where it may be.
  static Expected<std::unique_ptr<LibraryTask>>
  prepare(std::shared_ptr<Library> library, const rules::Conv &conv,
          const ConvWishes &wishes, DeviceAddress workspace);
  ~ConvTask() override;

  Status bind(const DeviceAddress *operands) override;
  Status enqueue(const DeviceAddress *operands,
                 StreamHandle stream) const override;

private:
  ConvTask(std::shared_ptr<Library> library, DeviceAddress workspace)
      : library(library), workspace(workspace), plan(library->api) {}

  using Addresses = std::array<DeviceAddress, 5>;

  Addresses addressesOf(const DeviceAddress *operands) const;
  /// Null: the operands have never been bound.
  Descriptor packOf(const DeviceAddress *operands) const;

  const std::shared_ptr<Library> library;
  const DeviceAddress workspace;
  ConvPlan plan;
  std::vector<int64_t> ids; ///< of the operands
  /// A variant pack for each place of the operands.
  std::vector<std::pair<Addresses, Descriptor>> packs;
};

} // namespace partita::runtime::cuda::cudnn

#endif // PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_CONVTASK_H
