//===- ZeroBubbleV.cpp - Two stages a device, placed in a V ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ZB-V (Qi et al., 2023, section 6). Stages go from the first device to the
// last, and back to the first:
//
//   cpu:0   0       5
//   cpu:1     1   4
//   cpu:2       2 3
//
// So the first device has the loss, and begins with its gradients while the
// last one still fills up. The backward is split, as by zb_h1. Each device
// begins with forwards of both of its stages (primed: the second one), then
// takes a forward, the gradients of values and those of weights of the one and
// the other in turn, and ends with what is left. Two devices, four
// micro-batches, all units of the same length:
//
//   cpu:0   0 1  2  .  0' 0'i 0'w 1' 1'i 1'w 3 0i 0w 2' 2'i 2'w ...
//   cpu:1   . 0  0' 1  1' 2   .   0'i ...
//
// In units of half a stage the bubble is (p - 1) / (6 m + p - 1), where a
// micro-batch takes six. A device holds what the gradients need of 2 p halves,
// as much as the first one does by 1F1B.
//
// A step of fewer than 2 p - 1 micro-batches has the order of one of so many,
// without those that there are not.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/PipelineStages.h"
#include "compiler/schedule/Registry.h"

#include <algorithm>

namespace partita::schedule {
namespace {

/// The units of one device, in order.
class DeviceOrder {
public:
  /// `first` and `second`: its stages.
  DeviceOrder(OrderWriter &writer, int first, int second)
      : writer(writer), first{first}, second{second} {}

  /// `d`: the number of the device, of p.
  void write(int d, int p, int microBatches) {
    const int count = std::max(2 * p - 1, microBatches);
    // Until the first micro-batch comes back.
    for (int i = 0; i < 2 * (p - d) - 1; ++i)
      addForward(first);
    for (int i = 0; i < d; ++i) {
      addForward(second);
      addForward(first);
    }
    for (int i = 0; i < p - d; ++i) {
      addForward(second);
      addWhole(second);
    }
    while (second.forwards < count) {
      if (first.forwards < count)
        addForward(first);
      addWhole(first);
      addForward(second);
      addWhole(second);
    }
    // Other devices wait for the gradients of values that are left.
    for (int i = 0; i < d; ++i) {
      addBackward(first);
      addBackward(second);
    }
    for (int i = 0; i < p - d; ++i) {
      addBackward(first);
      addWeights(first);
    }
    for (Half *half : {&second, &first})
      while (half->weights < half->backwards)
        addWeights(*half);
  }

private:
  struct Half {
    int stage;
    int forwards = 0, backwards = 0, weights = 0; ///< that are in the order
  };

  void addForward(Half &half) {
    writer.addForward(half.stage, half.forwards++);
  }
  void addBackward(Half &half) {
    writer.addBackward(half.stage, half.backwards++);
  }
  void addWeights(Half &half) { writer.addWeights(half.stage, half.weights++); }
  void addWhole(Half &half) {
    addBackward(half);
    addWeights(half);
  }

  OrderWriter &writer;
  Half first, second;
};

} // namespace

static UnitOrders orderZeroBubbleV(const ScheduleProblem &problem) {
  const Pipeline pipeline = getPipeline(problem);
  if (!pipeline.isV()) {
    UnitOrders orders = kZeroBubbleH1.order(problem);
    if (orders.remark.empty())
      orders.remark = "zb_v needs two stages on each device, placed there and "
                      "back (0 1 2 2 1 0): units are ordered as by zb_h1";
    return orders;
  }
  const int p = static_cast<int>(pipeline.devices.size());
  OrderWriter writer(problem, pipeline);
  for (int d = 0; d < p; ++d)
    DeviceOrder(writer, d, 2 * p - 1 - d).write(d, p, problem.microBatches);
  return writer.finish();
}

const ScheduleKind kZeroBubbleV = {
    .name = "zb_v",
    .summary = "zb_h1 with two stages a device, there and back, "
               "and a shorter wait",
    .isForTraining = true,
    .stagesPerDevice = 2,
    .placement = Placement::v,
    .splitsBackward = true,
    .microBatches = getTwoPerDevice,
    .order = orderZeroBubbleV};

} // namespace partita::schedule
