//===- MachineModel.cpp - What a device can do ----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/cost/MachineModel.h"

#include "compiler/codegen/Backend.h"
#include "compiler/pipeline/cost/MeasuredCost.h"
#include "compiler/pipeline/cost/WorkKey.h"
#include "dialects/nn/NNDialect.h"
#include "runtime/abi/machine.h"

#include <algorithm>

using namespace mlir;
namespace key = partita::abi::machine;

namespace partita::pipeline {
namespace {

// One core with AVX-512 at about 3 GHz.
constexpr double kContractionFlops = 150e9; // a second: dot, conv
constexpr double kWinogradSpeedup = 1.8;
constexpr double kIntegerSpeedup = 3; // products of 8 bits, to f32
constexpr int64_t kLanes = 16;        // floats in a vector
constexpr double kAttentionFlops = 90e9;
constexpr double kPointwiseFlops = 8e9;
constexpr double kBytes = 12e9; // read and written, a second
constexpr double kTransferLatencyNs = 2000;
constexpr double kTransferBytes = 8e9; // a second
// Devices of a collective spin until the last one comes, and share the work.
constexpr double kCollectiveLatencyNs = 700;
constexpr double kCollectiveBytes = 24e9; // sent by each device, a second
constexpr double kInstructionNs = 1500;   // to start one kernel or library call
constexpr double kUnitNs = 2000;          // to start one unit
constexpr double kMeasuredUnitNs = 200;   // what a unit costs besides its work

double getDefaultNs(const nn::Cost &cost, nn::ClusterKind kind) {
  // Where each operation waits for the one before, no vector helps.
  int64_t flops = cost.flops + (kLanes - 1) * cost.sequential;
  // In loops of ours a product is arithmetic like any other.
  if (kind == nn::ClusterKind::kernel && cost.kind != nn::CostKind::movement)
    return flops / kPointwiseFlops * 1e9;
  switch (cost.kind) {
  case nn::CostKind::dot:
  case nn::CostKind::conv:
    return flops / kContractionFlops * 1e9;
  case nn::CostKind::attention:
    return flops / kAttentionFlops * 1e9;
  case nn::CostKind::movement:
  case nn::CostKind::none:
    return 0;
  // Products of a few rows, which run at the speed of the cache.
  case nn::CostKind::recurrent:
  case nn::CostKind::pointwise:
  case nn::CostKind::reduction:
    break;
  }
  return flops / kPointwiseFlops * 1e9;
}

double getSpeedup(Operation *op) {
  if (op->hasAttr(nn::kWinogradAttr))
    return kWinogradSpeedup;
  return nn::multipliesIntegers(op) ? kIntegerSpeedup : 1;
}

double getDefaultNs(const ClusterWork &work) {
  double compute = 0;
  int64_t unfusedBytes = 0;
  for (Operation *op : work.ops)
    if (auto costed = dyn_cast<nn::CostOpInterface>(op)) {
      nn::Cost cost = costed.getCost();
      double ns = getDefaultNs(cost, work.kind);
      compute += work.kind == nn::ClusterKind::call ? ns / getSpeedup(op) : ns;
      unfusedBytes += cost.bytes;
    }
  // A gather reads only a part of its table.
  int64_t bytes = std::min(work.bytes, unfusedBytes);
  return kInstructionNs + std::max(compute, bytes / kBytes * 1e9);
}

} // namespace

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

FailureOr<MachineModel> MachineModel::load(Location loc, StringRef path,
                                           int64_t devices, int64_t threads,
                                           StringRef target) {
  MachineModel model;
  model.devices = std::max<int64_t>(devices, 1);
  model.threads = threads;
  auto [kind, architecture] = codegen::splitTarget(target);
  model.backend = codegen::findBackend(kind);
  if (!model.backend)
    return emitError(loc) << "there are no devices of '" << target << "'";
  model.rates = model.backend->getDeviceRates(architecture);
  if (path.empty())
    return model;
  llvm::Expected<MachineFile> file = MachineFile::read(path);
  if (!file)
    return emitError(loc) << llvm::toString(file.takeError());
  if (threads == 0)
    model.threads = std::max<int64_t>(file->cores / model.devices, 1);
  model.file = std::make_shared<const MachineFile>(std::move(*file));
  const MeasuredDevice *device =
      model.rates ? model.file->findDevice(kind, architecture) : nullptr;
  if (device) {
    // Its processors are those of its own architecture.
    if (auto own = model.backend->getDeviceRates(device->architecture))
      model.rates = std::move(own);
    model.rates = withMeasured(std::move(*model.rates), *device);
    model.isMeasured = true;
  }
  return model;
}

StringRef MachineModel::getName() const {
  if (rates)
    return rates->name;
  return file ? StringRef(file->cpu) : StringRef();
}

int64_t MachineModel::getCores() const {
  return file && !rates ? file->cores : 0;
}

StringRef MachineModel::getId() const {
  return file && !rates ? StringRef(file->id) : StringRef();
}

ClusterTime MachineModel::getClusterTime(const ClusterWork &work,
                                         const StepFootprint &step) const {
  if (rates) {
    const double ns =
        backend->getDeviceTime(*rates, work.ops, work.kind, work.bytes);
    return {.ns = ns, .modelledNs = ns};
  }
  if (!file) {
    double ns = getDefaultNs(work);
    return {.ns = ns, .modelledNs = ns};
  }
  const MeasuredTeam &team = file->getTeam(threads);
  Contention contention;
  contention.devices =
      std::max<int64_t>(std::min(devices, file->cores / threads), 1);
  if (contention.devices > 1) {
    contention.compute = team.at(key::kContentionCompute);
    contention.memory = team.at(key::kContentionMemory);
    contention.cache =
        std::min(team.at(key::kContentionCache), double(contention.devices));
  }
  ClusterTime time =
      getMeasuredTime(work, step, team, file->lanes, contention, *backend);
  time.key = getWorkKey(work);
  if (team.threads == threads)
    time.ns *= team.getWorkRatio(time.key, devices);
  return time;
}

/// The table of a team, or null if it was not measured.
const MeasuredTable *MachineModel::findTable(StringRef name) const {
  if (!file)
    return nullptr;
  const auto &tables = file->getTeam(threads).tables;
  auto it = tables.find(name.str());
  return it == tables.end() ? nullptr : &it->second;
}

static double getNsOfBytes(const MeasuredTable &table, int64_t bytes) {
  const double most = table.axes[0].back();
  // Beyond what was measured the rate stays.
  return table.at(std::max<double>(bytes, 1)) * std::max(bytes / most, 1.0);
}

double MachineModel::getTransferNs(int64_t bytes) const {
  if (rates)
    return rates->copy + bytes / rates->peer;
  if (const MeasuredTable *table = findTable(key::kTransfer))
    return getNsOfBytes(*table, bytes);
  return kTransferLatencyNs + bytes / kTransferBytes * 1e9;
}

double MachineModel::getTransferNs(int64_t bytes,
                                   const MachineModel &to) const {
  if (&to == this || (!rates && !to.rates))
    return getTransferNs(bytes);
  // One copy after the other, each on its own way to or from the host.
  double ns = 0;
  for (const MachineModel *model : {this, &to})
    if (model->rates)
      ns += model->rates->copy + bytes / model->rates->host;
  return ns;
}

double MachineModel::getCollectiveNs(int64_t sentBytes, int64_t devices) const {
  if (rates)
    return rates->collective + rates->hop * (devices - 1) +
           sentBytes / rates->peer;
  if (const MeasuredTable *table = findTable(key::kCollective))
    return getNsOfBytes(*table, sentBytes);
  return kCollectiveLatencyNs + sentBytes / kCollectiveBytes * 1e9;
}

double MachineModel::getUnitNs() const {
  if (rates)
    return rates->unit;
  return file ? kMeasuredUnitNs : kUnitNs;
}

int64_t countFlops(ArrayRef<Operation *> ops) {
  int64_t flops = 0;
  for (Operation *op : ops)
    if (auto costed = dyn_cast<nn::CostOpInterface>(op))
      flops += costed.getCost().flops;
  return flops;
}

} // namespace partita::pipeline
