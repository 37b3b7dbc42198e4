//===- Library.cpp - cuBLASLt on a GPU ------------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/cublaslt/Library.h"

namespace partita::runtime::cuda::cublaslt {

Library::Library(const Api &api, std::shared_ptr<const Gpu> gpu)
    : api(api), gpu(std::move(gpu)),
      cache(cacheFolder(), api.name() + "-" + this->gpu->kind()) {}

Expected<std::shared_ptr<Library>>
Library::open(const Api *api, std::shared_ptr<const Gpu> gpu) {
  if (!api) {
    int version = 0;
    if (Status status = gpu->api.check(gpu->api.driverGetVersion(&version),
                                       "cannot read the version of the driver "
                                       "for NVIDIA's GPUs");
        !status.ok())
      return status;
    Expected<const Api *> loaded = loadApi(version);
    if (!loaded)
      return loaded.status();
    api = *loaded;
  }
  std::shared_ptr<Library> library(new Library(*api, std::move(gpu)));
  const Result result = api->create(&library->object);
  if (result == Result::success)
    return library;
  library->object = nullptr;
  return api->error(result,
                    api->name() + " cannot be used on " + library->gpu->name());
}

Library::~Library() {
  if (!object)
    return;
  (void)gpu->use();
  (void)api.destroy(object);
}

} // namespace partita::runtime::cuda::cublaslt
