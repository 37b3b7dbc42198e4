//===- Registry.cpp - The kinds of devices there are ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/artifact/Artifact.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cuda/CudaDevice.h"

#include <set>
#include <vector>

namespace partita::runtime {
namespace {

std::vector<DeviceType> &types() {
  static std::vector<DeviceType> all = {
      {abi::DeviceKind::cpu, true, true, loadCpuDriver, nullptr,
       describeCpuNeeds, describeCpuLibrary},
      {abi::DeviceKind::cuda, false, false, loadCudaDriver, measureCudaDevices,
       describeCudaNeeds, nullptr},
  };
  return all;
}

} // namespace

std::span<const DeviceType> getDeviceTypes() { return types(); }

bool addDeviceType(const DeviceType &type) {
  types().push_back(type);
  return true;
}

const DeviceType *findDeviceType(abi::DeviceKind kind) {
  for (const DeviceType &type : types())
    if (type.kind == kind)
      return &type;
  return nullptr;
}

std::vector<std::string> describeNeeds(const Artifact &artifact) {
  std::vector<std::string> all;
  std::set<abi::DeviceKind> kinds;
  for (const abi::Device *device : *artifact.plan().devices())
    if (const DeviceType *type = findDeviceType(device->kind());
        type && kinds.insert(device->kind()).second)
      for (std::string &need : type->needs(artifact))
        all.push_back(std::move(need));
  return all;
}

} // namespace partita::runtime
