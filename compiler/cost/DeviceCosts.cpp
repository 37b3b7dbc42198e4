//===- DeviceCosts.cpp - Predicted times on other devices -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/DeviceCosts.h"

#include "compiler/codegen/Backend.h"
#include "runtime/abi/machine.h"

using namespace mlir;
namespace key = partita::abi::machine;

namespace partita {

/// What was measured takes the place of what is published.
static codegen::DeviceSpeeds withMeasured(codegen::DeviceSpeeds speeds,
                                          const MeasuredDevice &device) {
  speeds.name = device.name;
  const std::pair<const char *, double codegen::DeviceSpeeds::*> all[] = {
      {key::kProcessors, &codegen::DeviceSpeeds::processors},
      {key::kClock, &codegen::DeviceSpeeds::clock},
      {key::kMemory, &codegen::DeviceSpeeds::memory},
      {key::kLaunch, &codegen::DeviceSpeeds::launch},
      {key::kUnit, &codegen::DeviceSpeeds::unit},
      {key::kCopy, &codegen::DeviceSpeeds::copy},
      {key::kHost, &codegen::DeviceSpeeds::host},
      {key::kPeer, &codegen::DeviceSpeeds::peer}};
  for (auto [name, member] : all)
    if (auto it = device.speeds.find(name); it != device.speeds.end())
      speeds.*member = it->second;
  return speeds;
}

DeviceCosts::DeviceCosts(const codegen::Backend &backend,
                         codegen::DeviceSpeeds published,
                         const MachineFile *file, StringRef kind,
                         StringRef architecture)
    : backend(backend), speeds(std::move(published)), hasFile(file) {
  const MeasuredDevice *device =
      file ? file->findDevice(kind, architecture) : nullptr;
  if (!device) {
    speeds.name += " (unmeasured)";
    return;
  }
  // Its processors are those of its own architecture.
  if (auto own = backend.getDeviceSpeeds(device->architecture))
    speeds = std::move(*own);
  speeds = withMeasured(std::move(speeds), *device);
  isMeasured = true;
}

ClusterTime DeviceCosts::getClusterTime(const ClusterWork &work,
                                        const StepFootprint & /*step*/) const {
  const double ns =
      backend.getDeviceTime(speeds, work.ops, work.kind, work.bytes);
  return {.ns = ns, .modelledNs = ns};
}

double DeviceCosts::getTransferNs(int64_t bytes) const {
  return speeds.copy + bytes / speeds.peer;
}

double DeviceCosts::getHostCopyNs(int64_t bytes) const {
  return speeds.copy + bytes / speeds.host;
}

double DeviceCosts::getCollectiveNs(int64_t sentBytes, int64_t devices) const {
  return speeds.collective + speeds.hop * (devices - 1) +
         sentBytes / speeds.peer;
}

} // namespace partita
