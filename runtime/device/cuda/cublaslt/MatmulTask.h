//===- MatmulTask.h - A matrix product by cuBLASLt --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_CUBLASLT_MATMULTASK_H
#define PARTITA_RUNTIME_DEVICE_CUDA_CUBLASLT_MATMULTASK_H

#include "runtime/device/cuda/LibraryCall.h"
#include "runtime/device/cuda/cublaslt/Api.h"
#include "runtime/device/cuda/rules/Matmul.h"

#include <memory>
#include <string>

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

/// By how many bytes the addresses of an operand can be divided, at most 256.
struct Alignments {
  uint32_t a = 256, b = 256, c = 256, d = 256;
};

struct Workspace {
  DeviceAddress address = 0;
  size_t bytes = 0;
};

/// Operands: lhs, rhs, result, and then the addend and the bias, if there are.
class MatmulTask final : public LibraryTask {
public:
  /// Chooses the algorithm, or takes the one that was chosen before. `bias`:
  /// where the bias lies, if there is one, for some micro-batch.
  static Expected<std::unique_ptr<LibraryTask>>
  prepare(std::shared_ptr<Library> library, const rules::Matmul &matmul,
          const Alignments &alignments, DeviceAddress bias,
          const Workspace &workspace);

  Status enqueue(const DeviceAddress *operands,
                 StreamHandle stream) const override;

private:
  MatmulTask(std::shared_ptr<Library> library, const rules::Matmul &matmul,
             const Workspace &workspace);
  Status describe();
  Status useBias(DeviceAddress address) const;
  Status describe(LayoutDescriptor &layout, DataType type,
                  const rules::Matrix &matrix);
  Status choose(const Alignments &alignments);
  Status ask(const Alignments &alignments, Choice &choice);
  Status check(Result result) const;
  std::string problem(const Alignments &alignments) const;
  /// Of the addend; of the result where there is none.
  LayoutHandle addendLayout() const {
    return matmul.addend >= 0 ? c.get() : d.get();
  }

  const std::shared_ptr<Library> library;
  const rules::Matmul matmul;
  const Workspace workspace;
  ProductDescriptor product;
  LayoutDescriptor a, b, c, d;
  Algorithm algorithm;
};

} // namespace partita::runtime::cuda::cublaslt

#endif // PARTITA_RUNTIME_DEVICE_CUDA_CUBLASLT_MATMULTASK_H
