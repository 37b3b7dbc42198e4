//===- VisibleGpus.h - The GPUs that this process may use -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_MACHINE_VISIBLEGPUS_H
#define PARTITA_RUNTIME_DEVICE_CUDA_MACHINE_VISIBLEGPUS_H

#include "runtime/device/cuda/driver/Api.h"

#include <cstdint>
#include <type_traits>
#include <vector>

namespace partita::runtime::cuda {

/// What a GPU is. Processes send it to each other as it lies.
struct GpuFacts {
  Uuid id;                  ///< the same in all processes
  char model[96] = "";      ///< "NVIDIA H100"
  int32_t architecture = 0; ///< 90 for sm_90; 0: nothing is known
};
static_assert(std::is_trivially_copyable_v<GpuFacts>);

/// `number`: in the driver's order, from 0. Makes no context.
Expected<GpuFacts> readFacts(const Api &api, int number);

struct VisibleGpus {
  int driver = 0; ///< as cuDriverGetVersion says it; 0: there is none
  std::vector<GpuFacts> gpus; ///< in the driver's order
};

/// None without a driver, or if it fails: the first use of a GPU says why.
VisibleGpus readVisibleGpus();

} // namespace partita::runtime::cuda

#endif // PARTITA_RUNTIME_DEVICE_CUDA_MACHINE_VISIBLEGPUS_H
