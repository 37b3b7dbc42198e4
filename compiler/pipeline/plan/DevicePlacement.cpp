//===- DevicePlacement.cpp - Where the values of a device lie -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/plan/DevicePlacement.h"

#include <algorithm>

using namespace mlir;

namespace partita::pipeline {

using schedule::ScheduleStep;

DevicePlacement::DevicePlacement(const LoweredDevice &device,
                                 const std::vector<LoweredStage> &stages,
                                 const std::vector<ScheduleStep> &program,
                                 const std::vector<int> &valueOfSchedule)
    : device(device), stages(stages), program(program),
      valueOfSchedule(valueOfSchedule), runs(stages.size()),
      slots(device.values.size()) {
  for (int stage : device.stages)
    width = std::max<int64_t>(width, stages[stage].work.size() + 2);
  for (auto [position, step] : llvm::enumerate(program))
    if (step.kind == ScheduleStep::Kind::run)
      runs[step.stage].push_back(position);
  addBoundaryValues();
  addLocalValues();
  addLoadValues();
  shareInPlace();

  std::vector<Buffer> fixed(device.values.size());
  for (auto [id, value] : llvm::enumerate(device.values))
    if (value.space == plan::Space::constant) {
      fixed[id].bytes = nn::getByteSize(value.type);
      fixed[id].live = {{0, 0}};
    }
  constants = placeBuffers(fixed);
  arena = placeBuffers(buffers);
}

int DevicePlacement::addBuffer(int value) {
  buffers.emplace_back();
  buffers.back().bytes = nn::getByteSize(device.values[value].type);
  slots[value].push_back(buffers.size() - 1);
  return buffers.size() - 1;
}

/// Every micro-batch of a value lives from the step that writes it to the last
/// one that needs it; buffers are dealt out in that order.
void DevicePlacement::addBoundaryValues() {
  std::map<std::pair<int, int>, LiveRange> held; // (value, micro-batch)
  auto use = [&](int value, int microBatch, int64_t begin, int64_t end) {
    if (device.values[value].space != plan::Space::arena)
      return;
    auto [it, isNew] =
        held.emplace(std::pair(value, microBatch), LiveRange{begin, end});
    it->second.begin = std::min(it->second.begin, begin);
    it->second.end = std::max(it->second.end, end);
  };
  std::set<int> boundary;
  for (int id : valueOfSchedule)
    if (id >= 0)
      boundary.insert(id);
  for (auto [position, step] : llvm::enumerate(program)) {
    int64_t at = position * width;
    if (step.kind != ScheduleStep::Kind::run) {
      // What is released was last read by a run.
      if (step.value >= 0 && step.kind != ScheduleStep::Kind::release)
        use(valueOfSchedule[step.value], step.microBatch, at, at);
      continue;
    }
    const LoweredStage &stage = stages[step.stage];
    for (int id : boundary) {
      auto last = stage.lastUse.find(id);
      if (last != stage.lastUse.end()) {
        auto first = stage.firstWrite.find(id);
        use(id, step.microBatch,
            at + 1 +
                (first != stage.firstWrite.end() ? first->second
                                                 : last->second),
            at + 1 + last->second);
      }
    }
  }
  std::vector<std::pair<std::pair<int, int>, LiveRange>> sorted(held.begin(),
                                                                held.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](auto &a, auto &b) {
    return a.second.begin < b.second.begin;
  });
  for (auto &[key, range] : sorted) {
    auto [value, microBatch] = key;
    int buffer = -1;
    for (int candidate : slots[value])
      if (buffer < 0 && buffers[candidate].live.back().end < range.begin)
        buffer = candidate;
    if (buffer < 0)
      buffer = addBuffer(value);
    addLiveRange(buffers[buffer], range);
    bufferOf[key] = buffer;
  }
}

void DevicePlacement::addLocalValues() {
  for (int s : device.stages)
    for (auto [value, first] : stages[s].firstWrite) {
      if (!slots[value].empty())
        continue;
      int buffer = addBuffer(value);
      for (int64_t position : runs[s])
        addLiveRange(buffers[buffer],
                     {position * width + 1 + first,
                      position * width + 1 + stages[s].lastUse.at(value)});
    }
}

void DevicePlacement::addLoadValues() {
  int64_t count = device.load.size();
  for (auto [index, work] : llvm::enumerate(device.load)) {
    int64_t at = int64_t(index) - count - 1;
    for (const auto *list : {&work.outputs, &work.inputs})
      for (int id : *list) {
        const DeviceValue &value = device.values[id];
        if (value.space != plan::Space::arena)
          continue;
        if (slots[id].empty())
          addBuffer(id);
        LiveRange range{at, at};
        Buffer &buffer = buffers[slots[id][0]];
        if (!buffer.live.empty())
          range.begin = buffer.live.front().begin;
        addLiveRange(buffer, range);
      }
  }
}

void DevicePlacement::shareInPlace() {
  for (int s : device.stages)
    for (auto [index, work] : llvm::enumerate(stages[s].work)) {
      nn::ClusterOp cluster = work.cluster;
      plan::CallAttr call = dyn_cast<plan::CallAttr>(cluster.getLoweringAttr());
      if (auto kernel = dyn_cast<plan::KernelAttr>(cluster.getLoweringAttr())) {
        ArrayRef<int64_t> pairs = kernel.getInPlace();
        for (size_t i = 0; i + 1 < pairs.size(); i += 2)
          tryShare(s, index, work.inputs[pairs[i]], work.outputs[pairs[i + 1]]);
      }
      for (plan::PostOpAttr post :
           call ? call.getPostOps() : ArrayRef<plan::PostOpAttr>())
        if (post.getKind() == plan::PostOpKind::sum && post.getView())
          tryShare(s, index, work.inputs[post.getView().getValue()],
                   work.outputs[0]);
    }
}

/// Lets a result take over the bytes of an operand that nobody needs after this
/// work: their lives meet nowhere but here.
void DevicePlacement::tryShare(int stage, int index, int operand, int result) {
  if (slots[operand].size() != 1 || slots[result].size() != 1 ||
      device.values[operand].space != plan::Space::arena)
    return;
  int from = slots[operand][0], to = slots[result][0];
  const DeviceWork &work = stages[stage].work[index];
  if (from == to || buffers[from].bytes != buffers[to].bytes)
    return;
  // Read once only, and by no other operand that shares its bytes.
  int readers = 0;
  for (int id : work.inputs)
    readers += slots[id].size() == 1 && slots[id][0] == from;
  for (int id : work.outputs)
    readers += slots[id].size() == 1 && slots[id][0] == from;
  if (readers != 1)
    return;
  for (LiveRange a : buffers[from].live)
    for (LiveRange b : buffers[to].live) {
      int64_t begin = std::max(a.begin, b.begin), end = std::min(a.end, b.end);
      if (begin > end)
        continue;
      int64_t position = begin / width;
      bool here = begin == end && begin >= 0 && begin % width == 1 + index &&
                  program[position].kind == ScheduleStep::Kind::run &&
                  program[position].stage == stage;
      if (!here)
        return;
    }
  for (LiveRange range : buffers[from].live)
    addLiveRange(buffers[to], range);
  buffers[from] = Buffer();
  for (std::vector<int> &list : slots)
    std::replace(list.begin(), list.end(), from, to);
  for (auto &[key, buffer] : bufferOf)
    if (buffer == from)
      buffer = to;
}

int DevicePlacement::getBuffer(int value, int microBatch) const {
  if (slots[value].size() <= 1)
    return 0;
  auto it = bufferOf.find({value, microBatch});
  return it == bufferOf.end()
             ? 0
             : std::find(slots[value].begin(), slots[value].end(), it->second) -
                   slots[value].begin();
}

int64_t DevicePlacement::getOffset(int value, int buffer) const {
  if (device.values[value].space == plan::Space::constant)
    return constants.offsets[value];
  return slots[value].empty() ? 0 : arena.offsets[slots[value][buffer]];
}

} // namespace partita::pipeline
