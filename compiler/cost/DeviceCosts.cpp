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
static codegen::DeviceRates withMeasured(codegen::DeviceRates rates,
                                         const MeasuredDevice &device) {
  rates.name = device.name;
  const std::pair<const char *, double codegen::DeviceRates::*> all[] = {
      {key::kProcessors, &codegen::DeviceRates::processors},
      {key::kClock, &codegen::DeviceRates::clock},
      {key::kMemory, &codegen::DeviceRates::memory},
      {key::kLaunch, &codegen::DeviceRates::launch},
      {key::kUnit, &codegen::DeviceRates::unit},
      {key::kCopy, &codegen::DeviceRates::copy},
      {key::kHost, &codegen::DeviceRates::host},
      {key::kPeer, &codegen::DeviceRates::peer}};
  for (auto [name, member] : all)
    if (auto it = device.rates.find(name); it != device.rates.end())
      rates.*member = it->second;
  return rates;
}

DeviceCosts::DeviceCosts(const codegen::Backend &backend,
                         codegen::DeviceRates published,
                         const MachineFile *file, StringRef kind,
                         StringRef architecture)
    : backend(backend), rates(std::move(published)), hasFile(file) {
  const MeasuredDevice *device =
      file ? file->findDevice(kind, architecture) : nullptr;
  if (!device) {
    rates.name += " (unmeasured)";
    return;
  }
  // Its processors are those of its own architecture.
  if (auto own = backend.getDeviceRates(device->architecture))
    rates = std::move(*own);
  rates = withMeasured(std::move(rates), *device);
  isMeasured = true;
}

ClusterTime DeviceCosts::getClusterTime(const ClusterWork &work,
                                        const StepFootprint & /*step*/) const {
  const double ns =
      backend.getDeviceTime(rates, work.ops, work.kind, work.bytes);
  return {.ns = ns, .modelledNs = ns};
}

double DeviceCosts::getTransferNs(int64_t bytes) const {
  return rates.copy + bytes / rates.peer;
}

double DeviceCosts::getHostCopyNs(int64_t bytes) const {
  return rates.copy + bytes / rates.host;
}

double DeviceCosts::getCollectiveNs(int64_t sentBytes, int64_t devices) const {
  return rates.collective + rates.hop * (devices - 1) + sentBytes / rates.peer;
}

} // namespace partita
