//===- Library.cpp - cuBLASLt on a GPU ------------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/cublaslt/Library.h"

namespace partita::runtime::cuda::cublaslt {

Expected<std::shared_ptr<Library>> openLibrary(const Api *api,
                                               std::shared_ptr<const Gpu> gpu) {
  if (!api) {
    int version = 0;
    PARTITA_TRY(gpu->api.check(gpu->api.driverGetVersion(&version),
                               "cannot read the version of the driver "
                               "for NVIDIA's GPUs"));
    const Api *loaded = PARTITA_TRY(loadApi(version));
    api = loaded;
  }
  auto library = std::make_shared<Library>(*api, std::move(gpu));
  PARTITA_TRY(library->create());
  return library;
}

} // namespace partita::runtime::cuda::cublaslt
