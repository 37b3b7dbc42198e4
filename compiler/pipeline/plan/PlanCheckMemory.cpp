//===- PlanCheckMemory.cpp - Does every device have room for its part? ----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a device has not, the error says what takes the room: the step at which
// most bytes of the arena are needed, and the largest tensors then.
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/Decision.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/plan/DeviceMemory.h"
#include "runtime/abi/Text.h"

#include "llvm/ADT/StringExtras.h"

#include <map>

namespace partita::pipeline {
#define GEN_PASS_DEF_PLANCHECKMEMORYPASS
#include "compiler/pipeline/Passes.h.inc"
} // namespace partita::pipeline

using namespace mlir;

namespace partita::pipeline {
namespace {

/// A tensor in the arena, from the instruction or step that writes it to the
/// last that needs it.
struct LiveTensor {
  std::string name;
  int64_t offset = 0, bytes = 0;
  int64_t begin = 0, end = 0;
};

struct Moment {
  int64_t time = 0;
  int64_t bytes = 0;
  std::string name; ///< of the instruction or step
};

/// Follows a program once and finds what is alive when.
class ArenaWalk {
public:
  explicit ArenaWalk(plan::ProgramOp program)
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

  /// The moment at which most bytes are needed; a byte that two tensors share
  /// counts once.
  Moment findPeak() const {
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

  /// What is alive at a time, the largest first.
  std::vector<const LiveTensor *> getTensors(int64_t time) const {
    std::vector<const LiveTensor *> alive;
    for (const LiveTensor &tensor : tensors)
      if (tensor.begin <= time && time <= tensor.end)
        alive.push_back(&tensor);
    llvm::stable_sort(alive, [](const LiveTensor *a, const LiveTensor *b) {
      return a->bytes != b->bytes ? a->bytes > b->bytes : a->begin < b->begin;
    });
    return alive;
  }

private:
  static int64_t countBytes(std::vector<const LiveTensor *> alive) {
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

  void visit(plan::ScheduleStepOpInterface step) {
    microBatch = step.getStepMicroBatch();
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

  static std::string labelOf(Operation &op) {
    auto label = op.getAttrOfType<StringAttr>("label");
    return label ? label.str() : "";
  }

  /// What a step brings: the value of the channel, or an input.
  std::string nameOf(Operation *step) {
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

  int64_t now() const { return static_cast<int64_t>(names.size()) - 1; }

  /// A slot that steps write, and where it begins on the micro-batch at hand;
  /// null if it is another.
  std::pair<plan::SlotOp, int64_t> locate(Value value) const {
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

  void read(Value value) {
    auto [slot, offset] = locate(value);
    if (auto it = openOf.find({slot, offset}); slot && it != openOf.end())
      open[it->second].end = now();
  }

  /// Each write begins another tensor; what was there is needed no more.
  void write(Value value, const std::string &name) {
    auto [slot, offset] = locate(value);
    if (!slot)
      return;
    auto [it, isNew] = openOf.try_emplace({slot, offset}, open.size());
    if (isNew)
      open.emplace_back();
    else
      tensors.push_back(open[it->second]);
    open[it->second] = {name, offset, slot.getByteSize(), now(), now()};
  }

  ModuleOp module;
  llvm::StringMap<plan::UnitOp> units;
  std::vector<std::string> names; ///< by time
  SmallVector<LiveTensor> tensors, open;
  std::map<std::pair<Operation *, int64_t>, size_t> openOf; ///< by slot, offset
  llvm::DenseMap<std::pair<Attribute, int64_t>, Value> sent; ///< by channel
  int64_t microBatch = 0; ///< of the step at hand
};

struct PlanCheckMemoryPass
    : impl::PlanCheckMemoryPassBase<PlanCheckMemoryPass> {
  using PlanCheckMemoryPassBase::PlanCheckMemoryPassBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    ModuleOp module = getOperation();
    int64_t memory = getMemory(module);
    if (memory <= 0)
      return;
    plan::ProgramOp fullest;
    for (auto program : module.getOps<plan::ProgramOp>())
      if (!fullest || getPlannedPeak(program) > getPlannedPeak(fullest))
        fullest = program;
    if (fullest && getPlannedPeak(fullest) > memory) {
      report(fullest, memory);
      signalPassFailure();
    }
  }

private:
  static constexpr size_t kMostShown = 4;

  void report(plan::ProgramOp program, int64_t memory) {
    Location loc = getOperation().getLoc();
    plan::DeviceOp device = plan::getFirstDevice(program);
    int64_t parameters = program.getParameterBytes().value_or(0) +
                         program.getPackedBytes().value_or(0);
    InFlightDiagnostic error =
        emitError(loc)
        << "device " << (device ? device.getDeviceName() : program.getSymName())
        << " needs " << abi::bytesText(getPlannedPeak(program)) << " ("
        << getPlannedPeak(program) << " bytes), but has room for "
        << abi::bytesText(memory) << ": weights and constants "
        << abi::bytesText(parameters) << ", arena "
        << abi::bytesText(program.getArenaBytes().value_or(0))
        << ", the library's scratch "
        << abi::bytesText(program.getWorkspaceBytes().value_or(0));
    ArenaWalk walk(program);
    Moment peak = walk.findPeak();
    if (peak.bytes > 0) {
      std::vector<std::string> list;
      for (const LiveTensor *tensor : walk.getTensors(peak.time))
        list.push_back("'" + tensor->name + "' " +
                       std::to_string(tensor->bytes) + " bytes");
      error.attachNote(loc)
          << "its arena is fullest, with " << abi::bytesText(peak.bytes)
          << " in use, at " << peak.name
          << "; the largest tensors then: " << shorten(list);
    }
    if (std::vector<std::string> list = getWeights(program); !list.empty())
      error.attachNote(loc) << "its largest weights: " << shorten(list);
    if (!advice.empty())
      error.attachNote(loc) << std::string(advice);
  }

  static std::string shorten(std::vector<std::string> list) {
    size_t more = list.size() - std::min(list.size(), kMostShown);
    list.resize(list.size() - more);
    return llvm::join(list, ", ") +
           (more ? ", and " + std::to_string(more) + " more" : "");
  }

  /// Weights of a program, the largest first.
  static std::vector<std::string> getWeights(plan::ProgramOp program) {
    std::vector<std::pair<int64_t, std::string>> weights;
    for (auto slot : program.getBody().front().getOps<plan::SlotOp>())
      if (slot.hasWeight())
        weights.emplace_back(slot.getByteSize(), slot.getWeight()->str());
    llvm::stable_sort(weights,
                      [](auto &a, auto &b) { return a.first > b.first; });
    std::vector<std::string> list;
    for (const auto &[bytes, name] : weights)
      list.push_back("'" + name + "' " + std::to_string(bytes) + " bytes");
    return list;
  }
};

} // namespace

int64_t getMemory(ModuleOp module) {
  for (auto model : module.getOps<plan::ModelOp>())
    return getInteger(model, kMemoryAttr, 0);
  return 0;
}

bool fitsMemory(ModuleOp module) {
  int64_t memory = getMemory(module);
  return memory <= 0 ||
         llvm::all_of(module.getOps<plan::ProgramOp>(), [&](auto program) {
           return getPlannedPeak(program) <= memory;
         });
}

} // namespace partita::pipeline
