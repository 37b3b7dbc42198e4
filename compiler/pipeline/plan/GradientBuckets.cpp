//===- GradientBuckets.cpp - Gradients added up together ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/plan/StageLowering.h"

#include "compiler/model/Decision.h"
#include "compiler/pipeline/plan/Placement.h"
#include "runtime/abi/Collectives.h"

#include <tuple>

using namespace mlir;

namespace partita::pipeline {

std::pair<int, int> findComplete(const StageLowering &lowering,
                                 const LoweredDevice &device, int id) {
  const DeviceValue &value = device.values[id];
  if (!value.members.empty()) {
    std::pair<int, int> last = {-1, 0};
    for (int member : value.members)
      last = std::max(last, findComplete(lowering, device, member));
    return last;
  }
  if (value.space != plan::Space::arena || value.lanes > 1 || value.sum >= 0)
    return {-1, 0};
  const bool isSum = value.span == plan::Span::sum;
  for (int s : device.stages) {
    const LoweredStage &stage = lowering.stages[s];
    dist::StageOp op = stage.op;
    if (op.getPhase() == dist::Phase::prologue ||
        op.getPhase() == dist::Phase::update ||
        (isSum ? stage.sums.empty()
               : value.span != plan::Span::micro_batch ||
                     getInteger(op->getParentOp(), dist::kMicroBatchesAttr,
                                1) != 1))
      continue;
    for (int index = static_cast<int>(stage.work.size()); index-- > 0;)
      if (llvm::is_contained(stage.work[index].outputs, id))
        return {s, index};
  }
  return {-1, 0};
}

namespace {

/// How much of a collective's time its begin may take.
constexpr double kLatencyShare = 0.125;

class BucketFormer {
public:
  BucketFormer(StageLowering &lowering, LoweredDevice &device,
               LoweredStage &stage, const CostModel &machine)
      : lowering(lowering), device(device), stage(stage), machine(machine) {}

  void run() {
    struct Sum {
      std::pair<int, int> complete; ///< stage and work
      size_t work;                  ///< its all_reduce
    };
    std::vector<Sum> sums;
    for (auto [index, work] : llvm::enumerate(stage.work)) {
      if (!isa_and_nonnull<dist::AllReduceOp>(work.op) || work.isCopy)
        continue;
      auto complete = findComplete(lowering, device, work.inputs[0]);
      if (complete.first < 0 || !isOwn(work, complete))
        continue;
      addUpInPlace(work);
      sums.push_back({complete, index});
    }
    llvm::stable_sort(sums, [](const Sum &a, const Sum &b) {
      return a.complete < b.complete;
    });
    std::vector<Bucket> buckets, open;
    for (const Sum &sum : sums) {
      const DeviceWork &work = stage.work[sum.work];
      auto op = cast<dist::AllReduceOp>(work.op);
      const int64_t most = getMostBytes(op),
                    bytes = nn::getByteSize(getType(work));
      if (bytes >= most || isNumber(op))
        continue;
      auto bucket = llvm::find_if(open, [&](Bucket &each) {
        return each.op.getAxes() == op.getAxes() &&
               each.op.getKind() == op.getKind() &&
               each.op.getType().getElementType() ==
                   op.getType().getElementType() &&
               getSpan(each.work[0]) == getSpan(sum.work);
      });
      const bool isRagged = bytes % kAlignment != 0;
      if (bucket == open.end()) {
        open.push_back({op, {sum.work}, bytes, isRagged});
        continue;
      }
      // Nothing lies between those of a bucket, so one may end anywhere.
      if (isRagged && bucket->isRagged)
        continue;
      if (bucket->bytes + bytes > most) {
        buckets.push_back(*bucket);
        *bucket = {op, {sum.work}, bytes, isRagged};
        continue;
      }
      bucket->work.push_back(sum.work);
      bucket->bytes += bytes;
      bucket->isRagged |= isRagged;
    }
    llvm::append_range(buckets, open);
    join(buckets);
    updateWhatIsCompleteFirst();
  }

private:
  /// Whether nobody reads the operand of an all_reduce after the work that
  /// completes it, nor its result after the update.
  bool isOwn(const DeviceWork &reduce, std::pair<int, int> complete) const {
    const int maker = complete.first;
    const int operand = reduce.inputs[0], result = reduce.outputs[0];
    auto uses = [](ArrayRef<int> ids, int id) {
      return llvm::is_contained(ids, id);
    };
    for (int s : device.stages)
      for (const DeviceWork &work : lowering.stages[s].work)
        if (&work != &reduce && s != maker &&
            lowering.stages[s].op.getPhase() != dist::Phase::prologue &&
            (uses(work.inputs, operand) || uses(work.outputs, operand)))
          return false;
    LoweredStage &made = lowering.stages[maker];
    for (const DeviceWork &later :
         llvm::drop_begin(made.work, static_cast<size_t>(complete.second) + 1))
      if (uses(later.inputs, operand))
        return false;
    for (auto [id, value] : llvm::zip(made.results, made.op.getOutputs()))
      if (id == operand && llvm::any_of(value.getUsers(), [&](Operation *user) {
            return user != stage.op.getOperation();
          }))
        return false;
    return !uses(stage.results, operand) && !uses(stage.results, result) &&
           device.values[operand].type == device.values[result].type;
  }

  /// The result of an all_reduce takes the bytes of its operand.
  void addUpInPlace(DeviceWork &reduce) {
    const int operand = reduce.inputs[0], result = reduce.outputs[0];
    for (DeviceWork &work : stage.work) {
      llvm::replace(work.inputs, result, operand);
      llvm::replace(work.outputs, result, operand);
    }
  }

  struct Bucket {
    dist::AllReduceOp op;           ///< the first
    llvm::SmallVector<size_t> work; ///< of the stage
    int64_t bytes = 0;
    bool isRagged = false; ///< its bytes are no multiple of kAlignment
  };

  /// Numbers, such as how many targets a loss counts, are complete early, and
  /// all updates may wait for them. They stay alone.
  static bool isNumber(dist::AllReduceOp op) {
    return op.getType().getNumElements() == 1;
  }

  plan::Span getSpan(size_t work) const {
    return device.values[stage.work[work].inputs[0]].span;
  }

  RankedTensorType getType(const DeviceWork &work) const {
    return device.values[work.inputs[0]].type;
  }

  double getNs(dist::AllReduceOp op, int64_t bytes) const {
    const int64_t devices =
        dist::getGroupSize(stage.op->getParentOp(), op.getAxes());
    return machine.getCollectiveNs(
        abi::sentBytes(abi::CollectiveKind::all_reduce, bytes, devices),
        devices);
  }

  int64_t getMostBytes(dist::AllReduceOp op) const {
    if (const int64_t given =
            getInteger(stage.op->getParentOp(), dist::kFusionBytesAttr, -1);
        given >= 0)
      return given;
    constexpr int64_t kLeast = 1 << 12, kMost = 1 << 30;
    const double begin = getNs(op, 0);
    int64_t bytes = kLeast;
    while (bytes < kMost && begin > kLatencyShare * getNs(op, bytes))
      bytes *= 2;
    return bytes;
  }

  /// A bucket stands where its first all_reduce stood: sums are complete when
  /// the update begins.
  void join(ArrayRef<Bucket> buckets) {
    llvm::DenseMap<size_t, const Bucket *> bucketOf; // by work
    for (const Bucket &bucket : buckets)
      if (bucket.work.size() > 1)
        for (size_t index : bucket.work)
          bucketOf[index] = &bucket;
    llvm::SmallPtrSet<const Bucket *, 8> known;
    std::vector<DeviceWork> work;
    for (auto [index, each] : llvm::enumerate(stage.work)) {
      auto bucket = bucketOf.find(index);
      if (bucket == bucketOf.end())
        work.push_back(std::move(each));
      else if (known.insert(bucket->second).second)
        work.push_back(joinWork(*bucket->second));
    }
    stage.work = std::move(work);
  }

  /// What is complete first starts first, and devices finish in the order in
  /// which they start. So its update comes first, too; work that depends on
  /// other work stays behind it.
  ///
  /// Where gradients are scattered, all parts come before the updates instead:
  /// whole sums need more room than parts.
  void updateWhatIsCompleteFirst() {
    if (llvm::any_of(stage.work, [](const DeviceWork &work) {
          return isa_and_nonnull<dist::ReduceScatterOp>(work.op);
        }))
      return;
    using Order = std::pair<int, int>;  // stage and work after which it starts
    std::map<int, Order> read, written; // by value: by the last such work
    std::vector<std::pair<Order, size_t>> order;
    for (auto [index, work] : llvm::enumerate(stage.work)) {
      Order start = {-1, 0};
      if (isa_and_nonnull<dist::CollectiveOpInterface>(work.op) && !work.isCopy)
        start = findComplete(lowering, device, work.inputs[0]);
      auto follow = [&](const std::map<int, Order> &before, int id) {
        if (auto found = before.find(id); found != before.end())
          start = std::max(start, found->second);
      };
      for (int id : getParts(work.inputs))
        follow(written, id);
      for (int id : getParts(work.outputs)) {
        follow(written, id);
        follow(read, id);
      }
      auto note = [&](std::map<int, Order> &last, ArrayRef<int> ids) {
        for (int id : getParts(ids)) {
          auto [known, isNew] = last.try_emplace(id, start);
          known->second = std::max(known->second, start);
        }
      };
      note(read, work.inputs);
      note(written, work.outputs);
      order.push_back({start, index});
    }
    llvm::stable_sort(order, llvm::less_first());
    std::vector<DeviceWork> work;
    for (const auto &[start, index] : order)
      work.push_back(std::move(stage.work[index]));
    stage.work = std::move(work);
  }

  /// The values themselves, and those that they join.
  SmallVector<int> getParts(ArrayRef<int> ids) const {
    SmallVector<int> parts(ids);
    for (int id : ids)
      llvm::append_range(parts, device.values[id].members);
    return parts;
  }

  DeviceWork joinWork(const Bucket &bucket) {
    // In the order of the update, which is that of the parameters.
    auto isRagged = [&](size_t index) {
      return nn::getByteSize(getType(stage.work[index])) % kAlignment != 0;
    };
    SmallVector<size_t> order(bucket.work);
    llvm::sort(order, [&](size_t a, size_t b) {
      return std::pair(isRagged(a), a) < std::pair(isRagged(b), b);
    });
    DeviceValue joined;
    joined.span = getSpan(order.front());
    DeviceWork made;
    made.op = bucket.op;
    SmallVector<Location> locs;
    for (size_t index : order) {
      const DeviceWork &work = stage.work[index];
      joined.members.push_back(work.inputs[0]);
      made.joined.push_back(work.op);
      made.bytes += work.bytes;
      locs.push_back(work.op->getLoc());
      stage.ns -= work.time.ns;
    }
    const Type element =
        dist::AllReduceOp(bucket.op).getType().getElementType();
    joined.type = RankedTensorType::get(
        {bucket.bytes / nn::getByteSize(RankedTensorType::get({1}, element))},
        element);
    made.label = nn::getNodeName(FusedLoc::get(stage.op->getContext(), locs));
    made.time.ns = made.time.modelledNs = getNs(bucket.op, bucket.bytes);
    stage.ns += made.time.ns;
    made.inputs = made.outputs = {static_cast<int>(device.values.size())};
    device.values.push_back(std::move(joined));
    return made;
  }

  StageLowering &lowering;
  LoweredDevice &device;
  LoweredStage &stage;
  const CostModel &machine;
};

} // namespace

void formGradientBuckets(StageLowering &lowering, const CostModels &models) {
  for (LoweredStage &stage : lowering.stages)
    if (stage.op.getPhase() == dist::Phase::update)
      BucketFormer(lowering, lowering.devices[stage.device], stage,
                   models.at(stage.device))
          .run();
}

} // namespace partita::pipeline
