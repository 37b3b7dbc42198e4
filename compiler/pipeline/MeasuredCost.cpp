//===- MeasuredCost.cpp - Time of a cluster on a measured machine ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/MeasuredCost.h"

#include "dialects/nn/NNDialect.h"
#include "runtime/abi/machine.h"

#include "llvm/ADT/DenseSet.h"

#include <cmath>

using namespace mlir;
namespace key = partita::abi::machine;

namespace partita::pipeline {
namespace {

// Of a loop over a value in cache, an arithmetic operation is this part: the
// rest is the loads and stores, which a fused chain has once.
constexpr double kOperationShare = 0.25;

// Bytes that a cache holds, and that none does.
constexpr double kCached = 2 << 20, kUncached = 1e15;

RankedTensorType getType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

int64_t product(ArrayRef<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

bool isReordering(Operation *op) {
  return isa<nn::TransposeOp, nn::GatherOp, nn::GatherElementsOp,
             nn::ReverseOp>(op);
}

class Estimate {
public:
  Estimate(const ClusterWork &work, const StepFootprint &step,
           const MeasuredTeam &team, int64_t lanes,
           const Neighbours &neighbours)
      : work(work), step(step), team(team), lanes(lanes),
        neighbours(neighbours), compute(neighbours.compute),
        arena(2.0 * step.mostBytes * neighbours.cache),
        inside(work.ops.begin(), work.ops.end()) {}

  ClusterTime get() {
    Operation *root = findRoot();
    double ns = root ? getCallNs(root) : 0;
    if (ns > 0)
      ns += getEpilogueNs(root) + getReadNs(root) + getWriteNs(root);
    else
      ns = getKernelNs();
    return {.ns = ns, .ratedNs = ns, .memoryNs = memoryNs};
  }

private:
  /// What a library call computes, if it is among what was measured.
  Operation *findRoot() {
    if (work.kind == nn::ClusterKind::kernel)
      return nullptr;
    for (Operation *op : work.ops)
      if (isa<nn::DotOp, nn::ConvOp, nn::AttentionOp, nn::WindowReduceOp>(op))
        return op;
    return nullptr;
  }

  /// How many times as fast as with f32 a product is.
  double getSpeedup(Operation *op) {
    return nn::multipliesIntegers(op) ? team.at(key::kInteger) : 1;
  }

  double getCallNs(Operation *root) {
    if (auto dot = dyn_cast<nn::DotOp>(root))
      return getDotNs(dot);
    if (auto conv = dyn_cast<nn::ConvOp>(root))
      return getConvNs(conv);
    if (auto attention = dyn_cast<nn::AttentionOp>(root))
      return getAttentionNs(attention);
    return getPoolNs(cast<nn::WindowReduceOp>(root));
  }

  /// As many as whole vectors hold, if there is more than one vector.
  double roundUp(double count) {
    return count <= lanes ? lanes : std::ceil(count / lanes) * lanes;
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
    double count = neighbours.devices;
    double asked = 1 + (count - 1) * step.memoryShare;
    double crowd = std::max(asked * neighbours.memory / count, 1.0);
    double waiting = ns * uncached * crowd;
    memoryNs += waiting;
    return ns * (1 - uncached) + waiting;
  }

  /// What it takes to bring weights that the rest of the step has driven out
  /// of the caches. They were measured with themselves in a cache, if one holds
  /// them.
  double getColdNs(double rows, double bytes) {
    double footprint =
        step.weightBytes * neighbours.cache / neighbours.devices + arena;
    double before = team.at(key::kCold, {rows, bytes + 1}),
           now = team.at(key::kCold, {rows, footprint + 1});
    return move(std::max(now - before, 0.0) * bytes / 1024, footprint);
  }

  double getDotNs(nn::DotOp dot) {
    RankedTensorType lhs = getType(dot.getLhs()), rhs = getType(dot.getRhs());
    double batch = 1, depth = 1;
    for (int64_t dim : dot.getLhsBatch())
      batch *= lhs.getDimSize(dim);
    for (int64_t dim : dot.getLhsContract())
      depth *= lhs.getDimSize(dim);
    double rows = lhs.getNumElements() / std::max(batch * depth, 1.0);
    double columns = rhs.getNumElements() / std::max(batch * depth, 1.0);
    if (rows * columns * depth == 0)
      return 0;
    bool packed = work.rates.isLoad(dot.getRhs());
    double padded = roundUp(columns);
    double rate =
        team.at(packed ? key::kDot : key::kDotPlain, {rows, padded, depth});
    double ns =
        batch * 2 * rows * padded * depth / rate * compute / getSpeedup(dot);
    if (packed)
      ns += getColdNs(rows, nn::getByteSize(rhs));
    return ns;
  }

  double getConvNs(nn::ConvOp conv) {
    RankedTensorType weights = getType(conv.getWeights()), y = conv.getType();
    double groups = conv.getGroups();
    double out = weights.getDimSize(0), in = weights.getDimSize(1);
    double taps = product(weights.getShape().drop_front(2));
    double pixels = y.getNumElements() / std::max(out, 1.0);
    double images = std::max<double>(y.getDimSize(0), 1);
    double side = std::sqrt(pixels / images);
    double stride = 1;
    for (int64_t s : conv.getStrides())
      stride *= s;
    stride = std::pow(stride, 1.0 / conv.getStrides().size());
    if (out * in * taps * pixels == 0)
      return 0;
    if (in == 1 && groups > 1 && groups == out) {
      double padded = roundUp(out);
      double rate = team.at(key::kDepthwise, {taps, stride, padded, side});
      return 2 * taps * padded * pixels / rate * compute;
    }
    double padded = roundUp(out / groups);
    if (conv->hasAttr(nn::kWinogradAttr)) {
      // The filter is as many times larger as there are elements of a tile to
      // those of a window.
      double rate = team.at(key::kWinograd, {in, padded, side});
      return 2 * taps * in * padded * pixels / rate * compute +
             getColdNs(pixels, 16 / taps * nn::getByteSize(weights));
    }
    double rate = team.at(key::kConv, {taps, stride, in, padded, side});
    return groups * 2 * taps * in * padded * pixels / rate * compute /
               getSpeedup(conv) +
           getColdNs(pixels, nn::getByteSize(weights));
  }

  double getAttentionNs(nn::AttentionOp op) {
    RankedTensorType q = getType(op.getQ()), v = getType(op.getV());
    double rows = q.getDimSize(2), columns = v.getDimSize(2);
    double depth = (q.getDimSize(3) + v.getDimSize(3)) / 2.0;
    double heads = q.getDimSize(0) * q.getDimSize(1);
    double flops = op.getCost().flops;
    if (flops == 0)
      return 0;
    // Threads take heads in turns.
    double turns = std::ceil(heads / team.threads);
    double idle = turns * team.threads / heads;
    return flops / team.at(key::kAttention, {rows, columns, depth}) * idle *
           compute;
  }

  double getPoolNs(nn::WindowReduceOp op) {
    RankedTensorType y = getType(op.getResult());
    double taps = product(op.getWindow());
    int64_t rank = y.getRank();
    if (rank < 3 || y.getNumElements() == 0)
      return 0;
    bool last = op.getWindow()[rank - 1] == 1;
    double channels = y.getDimSize(last ? rank - 1 : 1);
    double pixels = y.getNumElements() / channels;
    double padded = roundUp(channels);
    double side = std::sqrt(pixels / std::max<double>(y.getDimSize(0), 1));
    return taps * padded * pixels / team.at(key::kPool, {taps, padded, side}) *
           compute;
  }

  /// Calls were measured on operands that stay in a cache, which other devices
  /// may use as well.
  double getReadNs(Operation *root) {
    double bytes = 0;
    for (Value operand : root->getOperands())
      if (!work.rates.isLoad(operand))
        bytes += nn::getByteSize(operand.getType());
    double footprint = work.bytes * neighbours.cache;
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
    double before = team.at(key::kSpill, work.bytes + 1),
           now = team.at(key::kSpill, footprint + 1);
    return move(std::max(now - before, 0.0) * bytes / 1024, footprint);
  }

  double getEpilogueNs(Operation *root) {
    double ns = 0;
    for (Operation *op : work.ops) {
      if (op == root || !isa<nn::PointwiseOpInterface>(op))
        continue;
      double elements = getType(op->getResult(0)).getNumElements();
      if (isa<nn::ErfOp>(op))
        ns += elements * team.at(key::kEpilogueGelu) * compute;
      else if (nn::isFunction(op))
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
      double elements = getType(op->getResult(0)).getNumElements();
      if (auto softmax = dyn_cast<nn::SoftmaxOp>(op)) {
        // Rows are computed in whole vectors.
        double row = std::max<double>(
            getType(softmax.getResult()).getDimSize(softmax.getDim()), 1);
        double padded = std::ceil(row / lanes) * lanes;
        arithmetic += elements / row * padded / team.at(key::kExponential);
      } else if (nn::isFunction(op))
        arithmetic += elements / team.at(key::kExponential);
      else if (nn::isDivision(op))
        arithmetic += elements / team.at(key::kDivide);
      else if (isReordering(op))
        arithmetic += elements / team.at(key::kReordered);
      else if (isa<nn::ReduceOp>(op))
        arithmetic += kOperationShare / simple *
                      getType(op->getOperand(0)).getNumElements();
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
  const Neighbours &neighbours;
  const double compute;
  const double arena; ///< bytes of arenas that a large cache sees
  const llvm::DenseSet<Operation *> inside; ///< the cluster
  double memoryNs = 0;
};

} // namespace

ClusterTime getMeasuredTime(const ClusterWork &work, const StepFootprint &step,
                            const MeasuredTeam &team, int64_t lanes,
                            const Neighbours &neighbours) {
  return Estimate(work, step, team, lanes, neighbours).get();
}

} // namespace partita::pipeline
