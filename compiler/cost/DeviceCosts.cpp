//===- DeviceCosts.cpp - Predicted times on other devices -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/CostKinds.h"

#include "compiler/codegen/Backend.h"
#include "runtime/abi/machine.h"

using namespace mlir;
namespace key = partita::abi::machine;

namespace partita {
namespace {

/// What was measured takes the place of what is published.
codegen::DeviceSpeeds withMeasured(codegen::DeviceSpeeds speeds,
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

/// Devices beside the processor. They have a few figures (DeviceSpeeds.h), and
/// their backend says what these make of an op. Without a file, or if it says
/// nothing of their kind, they are published figures of the target's usual
/// device.
class DeviceCosts final : public CostModel {
public:
  DeviceCosts(const codegen::Backend &backend, codegen::DeviceSpeeds published,
              const MachineFile *file, StringRef kind, StringRef architecture)
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

  StringRef getName() const override { return speeds.name; }
  bool lacksDevice() const override { return hasFile && !isMeasured; }
  ClusterTime getClusterTime(const ClusterWork &work,
                             const StepFootprint & /*step*/) const override {
    const double ns =
        backend.getDeviceTime(speeds, work.ops, work.kind, work.bytes);
    return {.ns = ns, .modelledNs = ns};
  }
  using CostModel::getTransferNs;
  double getTransferNs(int64_t bytes) const override {
    return speeds.copy + bytes / speeds.peer;
  }
  double getHostCopyNs(int64_t bytes) const override {
    return speeds.copy + bytes / speeds.host;
  }
  double getCollectiveNs(int64_t sentBytes, int64_t devices) const override {
    return speeds.collective + speeds.hop * (devices - 1) +
           sentBytes / speeds.peer;
  }
  double getUnitNs() const override { return speeds.unit; }
  double getLaunchNs() const override { return speeds.launch; }

private:
  const codegen::Backend &backend;
  codegen::DeviceSpeeds speeds;
  const bool hasFile;
  bool isMeasured = false; ///< the file says `speeds`
};

} // namespace

std::unique_ptr<const CostModel>
makeDeviceCosts(const codegen::Backend &backend,
                codegen::DeviceSpeeds published, const MachineFile *file,
                StringRef kind, StringRef architecture) {
  return std::make_unique<DeviceCosts>(backend, std::move(published), file,
                                       kind, architecture);
}

} // namespace partita
