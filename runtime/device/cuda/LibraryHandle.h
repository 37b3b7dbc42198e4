//===- LibraryHandle.h - A library's handle for a GPU -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_LIBRARYHANDLE_H
#define PARTITA_RUNTIME_DEVICE_CUDA_LIBRARYHANDLE_H

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

} // namespace partita::runtime::cuda

#endif // PARTITA_RUNTIME_DEVICE_CUDA_LIBRARYHANDLE_H
