//===- MeasuredCost.cpp - Time of a cluster on a measured machine ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/MeasuredCost.h"

#include "compiler/codegen/Backend.h"
#include "runtime/abi/machine.h"

#include "llvm/ADT/DenseSet.h"

#include <cmath>

using namespace mlir;
namespace key = partita::abi::machine;

namespace partita {
namespace {

// Of a loop over a value in cache, an arithmetic operation is this part: the
// rest is the loads and stores, which a fused chain has once.
constexpr double kOperationShare = 0.25;

// Bytes that a cache holds, and that none does.
constexpr double kCached = 2 << 20, kUncached = 1e15;

bool isReordering(Operation *op) {
  return isa<nn::TransposeOp, nn::GatherOp, nn::GatherElementsOp,
             nn::ReverseOp>(op);
}

class Estimate {
public:
  Estimate(const ClusterWork &work, const StepFootprint &step,
           const MeasuredTeam &team, int64_t lanes,
           const Contention &contention, const codegen::Backend &backend)
      : work(work), step(step), team(team), lanes(lanes),
        contention(contention), backend(backend), compute(contention.compute),
        arena(2.0 * step.mostBytes * contention.cache),
        inside(work.ops.begin(), work.ops.end()) {}

  ClusterTime get() {
    double ns = 0;
    if (std::optional<codegen::CallWork> call = getCallWork()) {
      ns = getCallNs(*call);
      ns += getEpilogueNs(call->root) + getReadNs(call->root) +
            getWriteNs(call->root);
    } else {
      ns = getKernelNs();
    }
    return {.ns = ns, .modelledNs = ns, .memoryNs = memoryNs};
  }

private:
  /// The call, if it is among what was measured.
  std::optional<codegen::CallWork> getCallWork() const {
    if (work.kind == nn::ClusterKind::kernel)
      return std::nullopt;
    const codegen::CallTuning *tuning = backend.getCallTuning();
    return tuning ? tuning->getCallWork(work.ops, work.rates, lanes)
                  : std::nullopt;
  }

  double getCallNs(const codegen::CallWork &call) {
    double ns = call.operations / team.at(call.table, call.point);
    if (call.parts > 0) {
      double turns = std::ceil(call.parts / team.threads);
      double idle = turns * team.threads / call.parts;
      ns *= idle;
    }
    ns *= compute;
    if (call.ofIntegers)
      ns /= team.at(key::kInteger);
    if (call.weightBytes > 0)
      ns += getColdNs(call.weightRows, call.weightBytes);
    return ns;
  }

  /// The time of moving bytes, given that of a device alone, if so many
  /// (`footprint`) are touched again and again: what no cache holds takes
  /// longer while other devices wait for memory, too.
  double move(double ns, double footprint) {
    double slowest = 1 / team.at(key::kRead, kUncached),
           fastest = 1 / team.at(key::kRead, kCached),
           time = 1 / team.at(key::kRead, footprint + 1);
    double uncached =
        slowest > fastest
            ? std::clamp((time - fastest) / (slowest - fastest), 0.0, 1.0)
            : 1.0;
    // All together reach a rate; as long as they ask for less, none waits.
    double count = contention.devices;
    double asked = 1 + (count - 1) * step.memoryShare;
    double slowdown = std::max(asked * contention.memory / count, 1.0);
    double waiting = ns * uncached * slowdown;
    memoryNs += waiting;
    return ns * (1 - uncached) + waiting;
  }

  /// What it takes to bring weights that the rest of the step has driven out
  /// of the caches. They were measured with themselves in a cache, if one holds
  /// them.
  double getColdNs(double rows, double bytes) {
    double footprint =
        step.weightBytes * contention.cache / contention.devices + arena;
    double before = team.at(key::kCold, {rows, bytes + 1}),
           now = team.at(key::kCold, {rows, footprint + 1});
    return move(std::max(now - before, 0.0) * bytes / 1024, footprint);
  }

  /// Calls were measured on operands that stay in a cache, which other devices
  /// may use as well.
  double getReadNs(Operation *root) {
    double bytes = 0;
    for (Value operand : root->getOperands())
      if (!work.rates.isLoad(operand))
        bytes += nn::getByteSize(operand.getType());
    double footprint = work.bytes * contention.cache;
    double before = team.at(key::kRead, work.bytes + 1),
           now = team.at(key::kRead, footprint + 1);
    return move(std::max(bytes / now - bytes / before, 0.0), footprint);
  }

  /// Calls were measured on a result that stays in a cache; a large one does
  /// not, by the time its memory is written again.
  double getWriteNs(Operation *root) {
    double bytes = nn::getByteSize(root->getResult(0).getType());
    // Half of an arena, or so, is touched before its other half is reused.
    double footprint = arena / 2 + (work.outputBytes ? step.outputBytes : 0);
    double before = team.at(key::kEviction, work.bytes + 1),
           now = team.at(key::kEviction, footprint + 1);
    return move(std::max(now - before, 0.0) * bytes / 1024, footprint);
  }

  double getEpilogueNs(Operation *root) {
    double ns = 0;
    for (Operation *op : work.ops) {
      if (op == root || !isa<nn::PointwiseOpInterface>(op))
        continue;
      double elements = nn::getTensorType(op->getResult(0)).getNumElements();
      if (isa<nn::ErfOp>(op))
        ns += elements * team.at(key::kEpilogueGelu) * compute;
      else if (nn::isTranscendental(op))
        ns += elements * team.at(key::kEpilogueExp) * compute;
      else
        for (Value operand : op->getOperands())
          if (!inside.contains(operand.getDefiningOp()) &&
              !work.rates.isLoad(operand))
            ns += elements * team.at(key::kEpilogueBinary);
    }
    return ns;
  }

  double getKernelNs() {
    double simple = team.at(key::kSimple), arithmetic = 0;
    double unfused = 0;
    for (Operation *op : work.ops) {
      if (isa<nn::ReshapeOp, nn::BroadcastOp, nn::ConstantOp>(op))
        continue;
      if (auto costed = dyn_cast<nn::CostOpInterface>(op))
        unfused += costed.getCost().bytes;
      double elements = nn::getTensorType(op->getResult(0)).getNumElements();
      if (auto softmax = dyn_cast<nn::SoftmaxOp>(op)) {
        // Rows are computed in whole vectors.
        double row = std::max<double>(
            nn::getTensorType(softmax.getResult()).getDimSize(softmax.getDim()),
            1);
        double padded = std::ceil(row / lanes) * lanes;
        arithmetic += elements / row * padded / team.at(key::kExponential);
      } else if (nn::isTranscendental(op))
        arithmetic += elements / team.at(key::kExponential);
      else if (nn::isDivision(op))
        arithmetic += elements / team.at(key::kDivide);
      else if (isReordering(op))
        arithmetic += elements / team.at(key::kReordered);
      else if (isa<nn::ReduceOp>(op))
        arithmetic += kOperationShare / simple *
                      nn::getTensorType(op->getOperand(0)).getNumElements();
      else if (auto costed = dyn_cast<nn::CostOpInterface>(op)) {
        // Where each operation waits for the one before, no vector helps.
        nn::Cost cost = costed.getCost();
        double operations = cost.flops + (lanes - 1.0) * cost.sequential;
        arithmetic +=
            kOperationShare / simple * std::max<double>(operations, elements);
      }
    }
    // A gather reads only a part of its table.
    double bytes = std::min<double>(work.bytes, unfused);
    double footprint = arena + (work.outputBytes ? step.outputBytes : 0);
    double moved = move(bytes / team.at(key::kRead, footprint + 1), footprint);
    return team.at(key::kDispatch) + std::max(arithmetic * compute, moved);
  }

  const ClusterWork &work;
  const StepFootprint &step;
  const MeasuredTeam &team;
  const int64_t lanes;
  const Contention &contention;
  const codegen::Backend &backend;
  const double compute;
  const double arena; ///< bytes of arenas that a large cache sees
  const llvm::DenseSet<Operation *> inside; ///< the cluster
  double memoryNs = 0;
};

} // namespace

ClusterTime getMeasuredTime(const ClusterWork &work, const StepFootprint &step,
                            const MeasuredTeam &team, int64_t lanes,
                            const Contention &contention,
                            const codegen::Backend &backend) {
  return Estimate(work, step, team, lanes, contention, backend).get();
}

} // namespace partita
