//===- ProcessorCosts.cpp - Predicted times on cores ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/CostKinds.h"

#include "compiler/codegen/Backend.h"
#include "compiler/cost/MeasuredCost.h"
#include "dialects/nn/NNDialect.h"
#include "runtime/abi/machine.h"

#include "llvm/Support/xxhash.h"

#include <algorithm>

using namespace mlir;
namespace key = partita::abi::machine;

namespace partita {
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

double getNsOfBytes(const MeasuredTable &table, int64_t bytes) {
  const double most = table.axes[0].back();
  // Beyond what was measured the rate stays.
  return table.at(std::max<double>(bytes, 1)) * std::max(bytes / most, 1.0);
}

std::string describe(Operation *op, analysis::Rates &rates) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << op->getName();
  if (Attribute properties = op->getPropertiesAsAttribute())
    stream << properties;
  if (op->hasAttr(nn::kWinogradAttr))
    stream << nn::kWinogradAttr;
  for (Value operand : op->getOperands())
    stream << (rates.isLoad(operand) ? " constant " : " ") << operand.getType();
  stream << " to " << op->getResultTypes();
  return text;
}

/// A hash of the ops of a cluster and of their shapes, with 64 bits. It ignores
/// names, locations and ops that move no bytes. So the same work has the same
/// key before and after stages are cut, with any number of devices, and in any
/// model. The key is never 0.
uint64_t getWorkKey(const ClusterWork &work) {
  std::vector<std::string> lines;
  for (Operation *op : work.ops)
    // A cluster takes its own copies of these along, or leaves them outside.
    if (!isa<nn::ReshapeOp, nn::BroadcastOp, nn::ConstantOp, nn::IotaOp>(op))
      lines.push_back(describe(op, work.rates));
  // Ops that do not depend on each other have no order of their own.
  llvm::sort(lines);
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  return std::max<uint64_t>(llvm::xxh3_64bits(text), 1);
}

/// Devices that are cores of the processor. They have tables of times, which a
/// file holds that was measured; without one, the speeds of one core with
/// AVX-512 at about 3 GHz. The file may also hold the measured and the
/// predicted time of the same work. Then the prediction is multiplied by their
/// ratio.
class ProcessorCosts final : public CostModel {
public:
  ProcessorCosts(const codegen::Backend &backend,
                 std::shared_ptr<const MachineFile> measured, int64_t devices,
                 int64_t threads)
      : backend(backend), file(std::move(measured)),
        devices(std::max<int64_t>(devices, 1)), threads(threads) {
    if (file && threads == 0)
      this->threads = std::max<int64_t>(file->cores / this->devices, 1);
  }

  StringRef getName() const override {
    return file ? StringRef(file->cpu) : StringRef();
  }
  int64_t getCores() const override { return file ? file->cores : 0; }
  StringRef getId() const override {
    return file ? StringRef(file->id) : StringRef();
  }
  int64_t getThreads() const override { return threads; }
  bool sharesMemory() const override { return true; }

  ClusterTime getClusterTime(const ClusterWork &work,
                             const StepFootprint &step) const override {
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
        getMeasuredTime(work, step, team, file->lanes, contention, backend);
    time.key = getWorkKey(work);
    if (team.threads == threads)
      time.ns *= team.getWorkRatio(time.key, devices);
    return time;
  }

  using CostModel::getTransferNs;
  double getTransferNs(int64_t bytes) const override {
    if (const MeasuredTable *table = findTable(key::kTransfer))
      return getNsOfBytes(*table, bytes);
    return kTransferLatencyNs + bytes / kTransferBytes * 1e9;
  }

  double getCollectiveNs(int64_t sentBytes,
                         int64_t /*devices*/) const override {
    if (const MeasuredTable *table = findTable(key::kCollective))
      return getNsOfBytes(*table, sentBytes);
    return kCollectiveLatencyNs + sentBytes / kCollectiveBytes * 1e9;
  }

  double getUnitNs() const override { return file ? kMeasuredUnitNs : kUnitNs; }

private:
  /// The table of a team, or null if it was not measured.
  const MeasuredTable *findTable(StringRef name) const {
    if (!file)
      return nullptr;
    const auto &tables = file->getTeam(threads).tables;
    auto it = tables.find(name.str());
    return it == tables.end() ? nullptr : &it->second;
  }

  const codegen::Backend &backend;
  const std::shared_ptr<const MachineFile> file;
  const int64_t devices;
  int64_t threads;
};

} // namespace

std::unique_ptr<const CostModel>
makeProcessorCosts(const codegen::Backend &backend,
                   std::shared_ptr<const MachineFile> file, int64_t devices,
                   int64_t threads) {
  return std::make_unique<ProcessorCosts>(backend, std::move(file), devices,
                                          threads);
}

} // namespace partita
