//===- KernelModule.h - The PTX of an artifact on a GPU ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_KERNELMODULE_H
#define PARTITA_RUNTIME_DEVICE_CUDA_KERNELMODULE_H

#include "runtime/artifact/Artifact.h"
#include "runtime/device/cuda/CudaInstance.h"

namespace partita::runtime::cuda {

/// The kernels of an artifact that have a launch. The driver has compiled them
/// for the GPU, and they are looked up by name once.
class KernelModule {
public:
  /// The calling thread must use the GPU. Loads nothing for a plan without such
  /// kernels.
  static Expected<std::shared_ptr<const KernelModule>>
  load(const Artifact &artifact, const std::shared_ptr<const Gpu> &gpu);

  /// Plan.kernels[index], which has a launch.
  const KernelLaunch &kernel(int index) const {
    return launches[static_cast<size_t>(index)];
  }

private:
  Status load(const PtxSection &ptx);
  Status find(const abi::Kernel &kernel, KernelLaunch &launch) const;

  std::shared_ptr<const Gpu> gpu;
  Module module;
  std::vector<KernelLaunch> launches;
};

} // namespace partita::runtime::cuda

#endif // PARTITA_RUNTIME_DEVICE_CUDA_KERNELMODULE_H
