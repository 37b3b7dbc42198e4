//===- Library.h - cuBLASLt on a GPU ----------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_CUBLASLT_LIBRARY_H
#define PARTITA_RUNTIME_DEVICE_CUDA_CUBLASLT_LIBRARY_H

#include "runtime/device/cuda/LibraryHandle.h"
#include "runtime/device/cuda/cublaslt/Api.h"

#include <memory>

namespace partita::runtime::cuda::cublaslt {

using Library = LibraryHandle<Api, Handle>;

/// The library's handle for a device. The calling thread must use the GPU.
/// `api` null: the library that is installed for the GPU's driver.
Expected<std::shared_ptr<Library>> openLibrary(const Api *api,
                                               std::shared_ptr<const Gpu> gpu);

/// A descriptor of the library, which is given back at the end.
template <typename Object, Result (*Api::*Release)(Object)> class Descriptor {
public:
  explicit Descriptor(std::shared_ptr<const Library> library)
      : library(std::move(library)) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() {
    if (object)
      (void)(library->api.*Release)(object);
  }

  Object get() const { return object; }
  /// For functions that make it.
  Object *place() { return &object; }

private:
  std::shared_ptr<const Library> library;
  Object object = nullptr;
};

using ProductDescriptor = Descriptor<ProductHandle, &Api::productDestroy>;
using LayoutDescriptor = Descriptor<LayoutHandle, &Api::layoutDestroy>;
using Preference = Descriptor<PreferenceHandle, &Api::preferenceDestroy>;

} // namespace partita::runtime::cuda::cublaslt

#endif // PARTITA_RUNTIME_DEVICE_CUDA_CUBLASLT_LIBRARY_H
