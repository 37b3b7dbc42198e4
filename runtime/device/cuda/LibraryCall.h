//===- LibraryCall.h - What calls of libraries share ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_LIBRARYCALL_H
#define PARTITA_RUNTIME_DEVICE_CUDA_LIBRARYCALL_H

#include "runtime/device/cuda/ChoiceCache.h"
#include "runtime/device/cuda/Gpu.h"

#include <memory>
#include <utility>

namespace partita::runtime::cuda {

/// What cuBLASLt or cuDNN has for one device, and what was chosen for it. One
/// thread uses it at a time. `Api`: the library's functions.
template <typename Api, typename Handle> class LibraryHandle {
public:
  LibraryHandle(const Api &api, std::shared_ptr<const Gpu> gpu)
      : api(api), gpu(std::move(gpu)),
        cache(cacheFolder(), api.name() + "-" + this->gpu->kind()) {}
  LibraryHandle(const LibraryHandle &) = delete;
  LibraryHandle &operator=(const LibraryHandle &) = delete;
  ~LibraryHandle() {
    if (!object)
      return;
    (void)gpu->use();
    (void)api.destroy(object);
  }

  /// Call once. The calling thread must use the GPU.
  Status create() {
    const auto result = api.create(&object);
    if (static_cast<int>(result) == 0)
      return Status();
    object = nullptr;
    return api.error(result, api.name() + " cannot be used on " + gpu->name());
  }

  Handle handle() const { return object; }

  const Api &api;
  const std::shared_ptr<const Gpu> gpu;
  ChoiceCache cache;

private:
  Handle object = nullptr;
};

/// Everything is chosen, and has its memory. Only where the operands lie
/// changes from one micro-batch to another.
class LibraryTask {
public:
  virtual ~LibraryTask() = default;

  /// Prepares a place of the operands, at load. Called for each place that
  /// frames give them. `operands`: the addresses of the call's views, in the
  /// order in which the task asked for them.
  virtual Status bind(const DeviceAddress *) { return Status(); }
  /// The operands are at a place that was bound.
  virtual Status enqueue(const DeviceAddress *operands,
                         StreamHandle stream) const = 0;
};

} // namespace partita::runtime::cuda

#endif // PARTITA_RUNTIME_DEVICE_CUDA_LIBRARYCALL_H
