//===- ArenaWalk.cpp - What lies in a device's arena, and when ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/plan/ArenaWalk.h"

using namespace mlir;

namespace partita::pipeline {

static std::string labelOf(Operation *op) {
  auto label = op->getAttrOfType<StringAttr>("label");
  return label ? label.str() : "";
}

namespace {

/// How many bytes intervals cover that come and go: a tree of the parts between
/// their bounds.
class CoveredBytes {
public:
  /// `bounds`: of all intervals, in order, each once.
  explicit CoveredBytes(std::vector<int64_t> bounds)
      : bounds(std::move(bounds)) {
    while (parts + 1 < this->bounds.size())
      parts *= 2;
    intervals.resize(2 * parts);
    covered.resize(2 * parts);
  }

  void add(int64_t begin, int64_t end) { change(begin, end, 1); }
  void remove(int64_t begin, int64_t end) { change(begin, end, -1); }
  int64_t count() const { return covered[1]; }

private:
  size_t find(int64_t bound) const {
    return llvm::lower_bound(bounds, bound) - bounds.begin();
  }
  int64_t at(size_t bound) const {
    return bounds[std::min(bound, bounds.size() - 1)];
  }

  void change(int64_t begin, int64_t end, int32_t by) {
    if (begin < end)
      change(1, 0, parts, find(begin), find(end), by);
  }
  void change(size_t node, size_t low, size_t high, size_t begin, size_t end,
              int32_t by) {
    if (begin <= low && high <= end) {
      intervals[node] += by;
    } else {
      const size_t middle = (low + high) / 2;
      if (begin < middle)
        change(2 * node, low, middle, begin, end, by);
      if (middle < end)
        change(2 * node + 1, middle, high, begin, end, by);
    }
    if (intervals[node] > 0)
      covered[node] = at(high) - at(low);
    else
      covered[node] =
          node < parts ? covered[2 * node] + covered[2 * node + 1] : 0;
  }

  std::vector<int64_t> bounds;
  size_t parts = 1;
  std::vector<int32_t> intervals; ///< that cover all of a node
  std::vector<int64_t> covered;   ///< bytes, by node
};

} // namespace

ArenaWalk::ArenaWalk(plan::ProgramOp program)
    : module(program->getParentOfType<ModuleOp>()) {
  Block &body = program.getBody().front();
  for (auto unit : body.getOps<plan::UnitOp>())
    units[unit.getSymName()] = unit;
  for (Operation &op : body)
    if (auto step = dyn_cast<plan::ScheduleStepOpInterface>(op))
      visit(step);
  tensors.append(std::make_move_iterator(open.begin()),
                 std::make_move_iterator(open.end()));
}

Moment ArenaWalk::findPeak() const {
  std::vector<int64_t> bounds;
  std::vector<const LiveTensor *> begins, ends;
  for (const LiveTensor &tensor : tensors) {
    for (int64_t bound : {tensor.offset, tensor.offset + tensor.bytes})
      bounds.push_back(bound);
    begins.push_back(&tensor);
    ends.push_back(&tensor);
  }
  llvm::sort(bounds);
  bounds.erase(llvm::unique(bounds), bounds.end());
  llvm::sort(begins, [](const LiveTensor *a, const LiveTensor *b) {
    return a->begin < b->begin;
  });
  llvm::sort(ends, [](const LiveTensor *a, const LiveTensor *b) {
    return a->end < b->end;
  });
  CoveredBytes covered(std::move(bounds));
  Moment peak;
  auto ended = ends.begin();
  for (auto begun = begins.begin(); begun != begins.end();) {
    const int64_t time = (*begun)->begin;
    for (; (*ended)->end < time; ++ended)
      covered.remove((*ended)->offset, (*ended)->offset + (*ended)->bytes);
    for (; begun != begins.end() && (*begun)->begin == time; ++begun)
      covered.add((*begun)->offset, (*begun)->offset + (*begun)->bytes);
    if (covered.count() > peak.bytes)
      peak = {time, covered.count()};
  }
  return peak;
}

std::string ArenaWalk::nameOf(const Moment &moment) const {
  auto [op, batch] = moments[moment.time];
  const std::string where = "micro-batch " + std::to_string(batch);
  if (auto step = dyn_cast<plan::ScheduleStepOpInterface>(op))
    return std::string(getInfo(step.getStepKind()).name) + " of " + where;
  return "'" + labelOf(op) + "' in unit " +
         op->getParentOfType<plan::UnitOp>().getSymName().str() + ", " + where;
}

std::string ArenaWalk::nameOf(const LiveTensor &tensor) const {
  Operation *writer = tensor.writer;
  if (auto recv = dyn_cast<plan::RecvOp>(writer))
    if (auto channel = dyn_cast_or_null<plan::ChannelOp>(
            SymbolTable::lookupSymbolIn(module, recv.getChannelAttr())))
      return channel.getValue().str();
  if (auto finish = dyn_cast<plan::FinishOp>(writer))
    if (auto collective = dyn_cast_or_null<plan::CollectiveOp>(
            SymbolTable::lookupSymbolIn(module, finish.getCollectiveAttr())))
      return collective.getValue().str();
  if (auto load = dyn_cast<plan::LoadInputOp>(writer)) {
    int64_t port = load.getPort();
    for (auto op : module.getBody()->getOps<plan::PortOp>())
      if (op.getKind() == plan::PortKind::input && port-- == 0)
        return op.getPortName().str();
  }
  return isa<plan::ScheduleStepOpInterface>(writer) ? "value" : labelOf(writer);
}

std::vector<const LiveTensor *> ArenaWalk::getTensors(int64_t time) const {
  std::vector<const LiveTensor *> alive;
  for (const LiveTensor &tensor : tensors)
    if (tensor.begin <= time && time <= tensor.end)
      alive.push_back(&tensor);
  llvm::stable_sort(alive, [](const LiveTensor *a, const LiveTensor *b) {
    return a->bytes != b->bytes ? a->bytes > b->bytes : a->begin < b->begin;
  });
  return alive;
}

int64_t ArenaWalk::countBytes(std::vector<const LiveTensor *> alive) {
  llvm::sort(alive, [](const LiveTensor *a, const LiveTensor *b) {
    return a->offset < b->offset;
  });
  int64_t bytes = 0, end = 0;
  for (const LiveTensor *tensor : alive) {
    int64_t last = tensor->offset + tensor->bytes;
    bytes += std::max<int64_t>(0, last - std::max(end, tensor->offset));
    end = std::max(end, last);
  }
  return bytes;
}

void ArenaWalk::visit(plan::ScheduleStepOpInterface step) {
  microBatch = step.getStepMicroBatch();
  ++stepCount;
  auto run = dyn_cast<plan::RunOp>(*step);
  if (!run) {
    const abi::StepInfo &info = getInfo(step.getStepKind());
    moments.push_back({step, microBatch});
    Value slot = step.getStepSlot();
    // What is sent stays until its wait.
    const std::pair key(step.getStepSubject(), microBatch);
    if (step.getStepKind() == abi::StepKind::send)
      sent[key] = slot;
    if (step.getStepKind() == abi::StepKind::wait)
      slot = sent[key];
    if (slot && info.access == abi::SlotAccess::written)
      write(slot, step);
    else if (slot)
      read(slot);
    return;
  }
  plan::UnitOp unit = units.lookup(run.getUnit());
  if (!unit)
    return;
  for (Operation &op : unit.getBody().front()) {
    auto instruction = dyn_cast<plan::InstructionOpInterface>(op);
    if (!instruction)
      continue;
    moments.push_back({&op, microBatch});
    for (Value slot : instruction.getInstructionReads())
      read(slot);
    for (Value slot : instruction.getInstructionWrites())
      write(slot, &op);
  }
}

/// A slot that steps write, and where it begins on the micro-batch at hand;
/// null if it is another.
std::pair<plan::SlotOp, int64_t> ArenaWalk::locate(Value value) const {
  auto slot = value.getDefiningOp<plan::SlotOp>();
  if (!slot || !slot.isWritable() || !slot.getOffset())
    return {};
  int64_t offset = *slot.getOffset();
  if (slot.getFrame()) {
    ArrayRef<int64_t> copies =
        slot.getFrame().getDefiningOp<plan::FrameOp>().getCopies();
    offset += copies[microBatch % copies.size()];
  }
  return {slot, offset};
}

void ArenaWalk::read(Value value) {
  auto [slot, offset] = locate(value);
  if (auto it = openOf.find({slot, offset}); slot && it != openOf.end()) {
    open[it->second].end = now();
    open[it->second].last_step = stepCount;
  }
}

/// Each write begins another tensor; what was there is needed no more.
void ArenaWalk::write(Value value, Operation *writer) {
  auto [slot, offset] = locate(value);
  if (!slot)
    return;
  auto [it, isNew] = openOf.try_emplace({slot, offset}, open.size());
  if (isNew)
    open.emplace_back();
  else
    tensors.push_back(open[it->second]);
  open[it->second] = {
      writer, offset,    slot.getByteSize(), now(),
      now(),  stepCount, stepCount,          slot.getSpan() == plan::Span::sum};
}

} // namespace partita::pipeline
