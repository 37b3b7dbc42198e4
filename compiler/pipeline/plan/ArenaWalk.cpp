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
  addPlaces(body);
  for (auto unit : body.getOps<plan::UnitOp>())
    addUnit(unit);
  for (Operation &op : body)
    if (auto action = dyn_cast<plan::ActionOpInterface>(op))
      visit(action);
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
  if (auto action = dyn_cast<plan::ActionOpInterface>(op))
    return std::string(getInfo(action.getActionKind()).name) + " of " + where;
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
  return isa<plan::ActionOpInterface>(writer) ? "value" : labelOf(writer);
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

void ArenaWalk::addPlaces(Block &body) {
  for (auto slot : body.getOps<plan::SlotOp>()) {
    if (!slot.isWritable() || !slot.getOffset())
      continue;
    Place &place = places[slot.getSlot()];
    place = {openOf.size(),
             *slot.getOffset(),
             slot.getByteSize(),
             {},
             slot.getSpan() == plan::Span::sum};
    if (slot.getFrame())
      place.copies = slot.getFrame().getDefiningOp<plan::FrameOp>().getCopies();
    if (slot.getSum()) {
      // The bytes of the sum, for one of its lanes.
      place.number = places.lookup(slot.getSum()).number +
                     static_cast<size_t>(*slot.getLane());
      continue;
    }
    openOf.resize(openOf.size() + std::max<size_t>(place.copies.size(), 1), -1);
  }
}

/// A unit is run for each micro-batch, so it is looked at once.
void ArenaWalk::addUnit(plan::UnitOp unit) {
  std::vector<Instruction> &instructions = units[unit.getSymName()];
  for (Operation &op : unit.getBody().front()) {
    auto instruction = dyn_cast<plan::InstructionOpInterface>(op);
    if (!instruction)
      continue;
    Instruction &added = instructions.emplace_back();
    added.op = &op;
    for (Value slot : instruction.getInstructionReads())
      added.reads.push_back(find(slot));
    for (Value slot : instruction.getInstructionWrites())
      added.writes.push_back(find(slot));
  }
}

void ArenaWalk::visit(plan::ActionOpInterface action) {
  microBatch = action.getActionMicroBatch();
  ++actionCount;
  auto run = dyn_cast<plan::RunOp>(*action);
  if (!run) {
    const abi::ActionInfo &info = getInfo(action.getActionKind());
    moments.push_back({action, microBatch});
    Value slot = action.getActionSlot();
    // What is sent stays until its wait.
    const std::pair key(action.getActionSubject(), microBatch);
    if (action.getActionKind() == abi::ActionKind::send)
      sent[key] = slot;
    if (action.getActionKind() == abi::ActionKind::wait)
      slot = sent[key];
    if (action.getActionKind() == abi::ActionKind::start)
      started[key] = {slot, now(), actionCount};
    for (Value each : getParts(slot))
      if (info.access == abi::SlotAccess::written)
        write(find(each), action);
      else
        read(find(each));
    if (action.getActionKind() == abi::ActionKind::finish)
      finish(started[key], slot);
    return;
  }
  auto unit = units.find(run.getUnit());
  if (unit == units.end())
    return;
  for (const Instruction &instruction : unit->second) {
    moments.push_back({instruction.op, microBatch});
    for (const Place *place : instruction.reads)
      read(place);
    for (const Place *place : instruction.writes)
      write(place, instruction.op);
  }
}

/// Null if no action writes the slot.
const ArenaWalk::Place *ArenaWalk::find(Value slot) const {
  auto found = places.find(slot);
  return found == places.end() ? nullptr : &found->second;
}

/// Which copy the micro-batch at hand has.
size_t ArenaWalk::copyOf(const Place &place) const {
  return place.copies.empty()
             ? 0
             : static_cast<size_t>(microBatch) % place.copies.size();
}

void ArenaWalk::read(const Place *place) {
  if (!place)
    return;
  if (int64_t number = openOf[place->number + copyOf(*place)]; number >= 0) {
    open[number].end = now();
    open[number].last_action = actionCount;
  }
}

/// From its start to its finish a collective has both what it reads and what
/// it writes.
void ArenaWalk::finish(const Started &start, Value target) {
  for (Value source : getParts(start.source))
    read(find(source));
  for (Value part : getParts(target)) {
    const Place *place = find(part);
    if (!place)
      continue;
    LiveTensor &tensor =
        open[static_cast<size_t>(openOf[place->number + copyOf(*place)])];
    tensor.begin = start.time;
    tensor.first_action = start.action;
  }
}

/// The slots whose bytes an action uses by its slot; none if it has no slot.
SmallVector<Value> ArenaWalk::getParts(Value slot) {
  if (!slot)
    return {};
  auto op = slot.getDefiningOp<plan::SlotOp>();
  if (op && !op.getMembers().empty())
    return llvm::to_vector(op.getMembers());
  return {slot};
}

/// Each write begins another tensor; what was there is needed no more.
void ArenaWalk::write(const Place *place, Operation *writer) {
  if (!place)
    return;
  const size_t copy = copyOf(*place);
  int64_t &number = openOf[place->number + copy];
  if (number < 0) {
    number = static_cast<int64_t>(open.size());
    open.emplace_back();
  } else {
    tensors.push_back(open[number]);
  }
  open[number] = {
      writer,
      place->offset + (place->copies.empty() ? 0 : place->copies[copy]),
      place->bytes,
      now(),
      now(),
      actionCount,
      actionCount,
      place->is_sum};
}

} // namespace partita::pipeline
