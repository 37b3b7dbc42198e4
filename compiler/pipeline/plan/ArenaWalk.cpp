//===- ArenaWalk.cpp - What lies in a device's arena, and when ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/plan/ArenaWalk.h"

using namespace mlir;

namespace partita::pipeline {

static std::string labelOf(Operation &op) {
  auto label = op.getAttrOfType<StringAttr>("label");
  return label ? label.str() : "";
}

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
  std::map<int64_t, std::vector<const LiveTensor *>> begins;
  for (const LiveTensor &tensor : tensors)
    begins[tensor.begin].push_back(&tensor);
  Moment peak;
  std::vector<const LiveTensor *> alive;
  for (const auto &[time, more] : begins) {
    llvm::erase_if(alive, [&](const LiveTensor *t) { return t->end < time; });
    alive.insert(alive.end(), more.begin(), more.end());
    if (int64_t bytes = countBytes(alive); bytes > peak.bytes)
      peak = {time, bytes, names[time]};
  }
  return peak;
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
  std::string where = "micro-batch " + std::to_string(microBatch);
  auto run = dyn_cast<plan::RunOp>(*step);
  if (!run) {
    const abi::StepInfo &info = getInfo(step.getStepKind());
    names.push_back(std::string(info.name) + " of " + where);
    Value slot = step.getStepSlot();
    // What is sent stays until its wait.
    const std::pair key(step.getStepSubject(), microBatch);
    if (step.getStepKind() == abi::StepKind::send)
      sent[key] = slot;
    if (step.getStepKind() == abi::StepKind::wait)
      slot = sent[key];
    if (slot && info.access == abi::SlotAccess::written)
      write(slot, nameOf(step));
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
    std::string label = labelOf(op);
    names.push_back("'" + label + "' in unit " + run.getUnit().str() + ", " +
                    where);
    for (Value slot : instruction.getInstructionReads())
      read(slot);
    for (Value slot : instruction.getInstructionWrites())
      write(slot, label);
  }
}

/// What a step brings: the value of the channel, or an input.
std::string ArenaWalk::nameOf(Operation *step) {
  if (auto recv = dyn_cast<plan::RecvOp>(step))
    if (auto channel = dyn_cast_or_null<plan::ChannelOp>(
            SymbolTable::lookupSymbolIn(module, recv.getChannelAttr())))
      return channel.getValue().str();
  if (auto finish = dyn_cast<plan::FinishOp>(step))
    if (auto collective = dyn_cast_or_null<plan::CollectiveOp>(
            SymbolTable::lookupSymbolIn(module, finish.getCollectiveAttr())))
      return collective.getValue().str();
  if (auto load = dyn_cast<plan::LoadInputOp>(step)) {
    int64_t port = load.getPort();
    for (auto op : module.getOps<plan::PortOp>())
      if (op.getKind() == plan::PortKind::input && port-- == 0)
        return op.getPortName().str();
  }
  return "value";
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
void ArenaWalk::write(Value value, const std::string &name) {
  auto [slot, offset] = locate(value);
  if (!slot)
    return;
  auto [it, isNew] = openOf.try_emplace({slot, offset}, open.size());
  if (isNew)
    open.emplace_back();
  else
    tensors.push_back(open[it->second]);
  open[it->second] = {
      name,  offset,    slot.getByteSize(), now(),
      now(), stepCount, stepCount,          slot.getSpan() == plan::Span::sum};
}

} // namespace partita::pipeline
