//===- DnnGpus.h - NVIDIA's cuDNN, for GPUs that are not there --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// cuDNN finalises plans for a GPU of which it only knows the properties. Where
// CMake found its header and the library.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_CUDA_DNNGPUS_H
#define PARTITA_TEST_UNIT_CUDA_DNNGPUS_H

#if __has_include(<cudnn_graph.h>) && defined(PARTITA_CUDNN_LIBRARY)

#include "runtime/device/cuda/cudnn/EnginePlan.h"

#include <cudnn_graph.h>

#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <string>

namespace partita::test {

/// Properties of GPUs, as cuDNN writes them; by data sheets.
struct DnnGpu {
  const char *name, *properties;
};
inline const DnnGpu kDnnGpus[] = {
    {"A100",
     R"({"deviceName": "NVIDIA A100-SXM4-80GB", "cudaDeviceId": 0, "deviceVer": 800, "multiProcessorCount": 108, "driverVer": 13000, "maxSharedMemoryPerBlockOptin": 166912, "totalGlobalMem": 85029158912, "regsPerBlock": 65536, "smClockRateKHz": 1410000, "memClockRateKHz": 1593000, "l2CacheSize": 41943040, "warpSize": 32, "maxSharedMemoryPerBlock": 49152, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "pciDeviceId": 0, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "isTccDriver": 0, "supportCoopLaunch": 1, "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64]})"},
    {"H100",
     R"({"deviceName": "NVIDIA H100 80GB HBM3", "cudaDeviceId": 0, "deviceVer": 900, "multiProcessorCount": 132, "driverVer": 13000, "maxSharedMemoryPerBlockOptin": 232448, "totalGlobalMem": 85029158912, "regsPerBlock": 65536, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000, "l2CacheSize": 52428800, "warpSize": 32, "maxSharedMemoryPerBlock": 49152, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "pciDeviceId": 0, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "isTccDriver": 0, "supportCoopLaunch": 1, "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64]})"},
    {"B200",
     R"({"deviceName": "NVIDIA B200", "cudaDeviceId": 0, "deviceVer": 1000, "multiProcessorCount": 148, "driverVer": 13000, "maxSharedMemoryPerBlockOptin": 232448, "totalGlobalMem": 85029158912, "regsPerBlock": 65536, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000, "l2CacheSize": 52428800, "warpSize": 32, "maxSharedMemoryPerBlock": 49152, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "pciDeviceId": 0, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "isTccDriver": 0, "supportCoopLaunch": 1, "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64]})"},
};

using ForDevice = runtime::cuda::cudnn::EnginePlan::ForDevice;

/// Calls a function for each GPU; without any. Returns why that is not
/// possible, or nothing.
inline std::string forEachGpu(
    const std::function<void(const runtime::cuda::cudnn::Api &api,
                             const char *gpu, const ForDevice &for_device)>
        &plan) {
  namespace ours = runtime::cuda::cudnn;
  // Where there is a driver, the library asks it for more than the emulator
  // has.
  if (::dlopen("libcuda.so.1", RTLD_NOW))
    return "this machine has a driver";
  auto opened = ours::openApi(PARTITA_CUDNN_LIBRARY);
  if (!opened)
    return opened.status().message();
  const ours::Api &api = *opened;
  for (const DnnGpu &gpu : kDnnGpus) {
    ours::Descriptor properties = nullptr;
    const auto kind =
        static_cast<ours::DescriptorType>(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    if (api.descriptorCreate(kind, &properties) != ours::Result::success)
      return api.name() + " has no properties of GPUs";
    const bool known =
        api.setAttribute(properties,
                         static_cast<ours::Attribute>(
                             CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION),
                         static_cast<ours::AttributeType>(CUDNN_TYPE_CHAR),
                         static_cast<int64_t>(std::strlen(gpu.properties)),
                         gpu.properties) == ours::Result::success &&
        api.finalize(properties) == ours::Result::success;
    auto for_device = [&](ours::Descriptor descriptor,
                          ours::DescriptorType type) {
      if (type == ours::DescriptorType::graph)
        return ours::Result::success;
      return api.setAttribute(descriptor,
                              static_cast<ours::Attribute>(
                                  type == ours::DescriptorType::plan
                                      ? CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP
                                  : type == ours::DescriptorType::engine
                                      ? CUDNN_ATTR_ENGINE_DEVICEPROP
                                      : CUDNN_ATTR_ENGINEHEUR_DEVICEPROP),
                              ours::AttributeType::descriptor, 1, &properties);
    };
    if (known)
      plan(api, gpu.name, for_device);
    (void)api.descriptorDestroy(properties);
    if (!known)
      return api.name() + " plans nothing for the properties of a " + gpu.name;
  }
  return "";
}

} // namespace partita::test

#endif

#endif // PARTITA_TEST_UNIT_CUDA_DNNGPUS_H
