//===- Registry.cpp - The kinds of devices there are ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/remote_cpu/RemoteCpuDevice.h"

namespace partita::runtime {
namespace {

const DeviceType types[] = {
    {abi::DeviceKind::cpu, true, loadCpuDriver, nullptr},
    {abi::DeviceKind::remote_cpu, false, loadRemoteCpuDriver, nullptr},
    {abi::DeviceKind::cuda, false, loadCudaDriver, measureCudaDevices},
};

} // namespace

std::span<const DeviceType> getDeviceTypes() { return types; }

const DeviceType *findDeviceType(abi::DeviceKind kind) {
  for (const DeviceType &type : types)
    if (type.kind == kind)
      return &type;
  return nullptr;
}

} // namespace partita::runtime
