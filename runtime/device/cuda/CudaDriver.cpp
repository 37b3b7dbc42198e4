//===- CudaDriver.cpp - The GPUs that the devices of a plan use -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Elements.h"
#include "runtime/device/cuda/CudaDevice.h"

#include <map>
#include <mutex>

namespace partita::runtime::cuda {
namespace {

class CudaDriver final : public Driver {
public:
  CudaDriver(const Artifact &artifact, const Api &api,
             const LibraryApis &libraries)
      : artifact(artifact), api(api), libraries(libraries) {}

  Expected<std::unique_ptr<Device>> create(const abi::Plan &plan, int index,
                                           const WeightPointers &weights,
                                           const DeviceOptions &options,
                                           const std::vector<int> &) override {
    const std::string before =
        std::string(text(at(plan.devices(), index).name())) + ": ";
    auto used = PARTITA_TRY(within(before, load(gpuOf(plan, index, options))));
    auto made = std::make_unique<CudaDevice>(plan, index, weights, used.gpu,
                                             used.kernels, options, libraries);
    PARTITA_TRY(within(before, made->make(options)));
    return std::unique_ptr<Device>(std::move(made));
  }

private:
  struct Used {
    std::shared_ptr<const Gpu> gpu;
    std::shared_ptr<const KernelModule> kernels;
  };

  /// The GPU that was asked for, or one of its own for each device of this
  /// kind.
  static int gpuOf(const abi::Plan &plan, int index,
                   const DeviceOptions &options) {
    const auto place = static_cast<size_t>(index);
    if (place < options.places.size())
      return options.places[place];
    int number = 0;
    for (int i = 0; i < index; ++i)
      number += at(plan.devices(), i).kind() == abi::DeviceKind::cuda;
    return number;
  }

  /// Devices are made by several threads.
  Expected<Used> load(int number) {
    std::lock_guard<std::mutex> lock(mutex);
    Used &used = gpus[number];
    if (!used.gpu) {
      auto gpu = PARTITA_TRY(Gpu::open(api, number));
      // No step shall do that.
      for (const auto &[other, known] : gpus)
        if (known.gpu)
          for (const auto &[from, to] :
               {std::pair(gpu, known.gpu), std::pair(known.gpu, gpu)})
            PARTITA_TRY(from->reach(*to));
      used.gpu = gpu;
    }
    PARTITA_TRY(used.gpu->use());
    if (!used.kernels)
      used.kernels = PARTITA_TRY(KernelModule::load(artifact, used.gpu));
    return used;
  }

  const Artifact &artifact;
  const Api &api;
  const LibraryApis libraries;
  std::mutex mutex;
  std::map<int, Used> gpus;
};

} // namespace

Expected<std::unique_ptr<Driver>> makeCudaDriver(const Artifact &artifact,
                                                 const DeviceOptions &,
                                                 const Api &api,
                                                 const LibraryApis &libraries) {
  return std::unique_ptr<Driver>(new CudaDriver(artifact, api, libraries));
}

} // namespace partita::runtime::cuda

namespace partita::runtime {

Expected<std::unique_ptr<Driver>> loadCudaDriver(const Artifact &artifact,
                                                 const DeviceOptions &options) {
  const auto api =
      PARTITA_TRY(within("'" + artifact.path() + "': ", cuda::loadApi()));
  return cuda::makeCudaDriver(artifact, options, *api);
}

} // namespace partita::runtime
