//===- ProgramVerifier.cpp - Trust nothing in a program -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/DeviceKinds.h"
#include "runtime/artifact/PlanChecks.h"
#include "runtime/artifact/PlanVerifier.h"
#include "runtime/base/Programs.h"
#include "runtime/base/Slots.h"
#include "runtime/base/StateParts.h"

#include <numeric>

namespace partita::runtime {
namespace {

/// Checks one program: its frames, slots, units, load program and actions.
class ProgramVerifier {
public:
  ProgramVerifier(const abi::Plan &plan, int index)
      : plan(plan), index(index), program(*plan.programs()->Get(index)) {}

  std::string verify() const {
    if (!inRange(program.arena_bytes(), kLargestRegion) ||
        !inRange(program.constant_bytes(), kLargestRegion) ||
        !inRange(program.parameter_bytes(), kLargestRegion) ||
        !inRange(program.packed_bytes(), kLargestRegion) ||
        !inRange(program.workspace_bytes(), kLargestRegion))
      return "has impossible sizes of its memory";
    if (const abi::MemoryParts *parts = program.memory())
      for (int64_t bytes : {parts->states(), parts->host(), parts->gradients(),
                            parts->kept(), parts->work()})
        if (!inRange(bytes, kLargestRegion))
          return "has impossible parts of its memory";
    for (int64_t i = 0; i < length(program.frames()); ++i)
      if (std::string e = frameError(*program.frames()->Get(i)); !e.empty())
        return "frame " + number(i) + " " + e;
    PARTITA_RETURN_ERROR(sequencesError());
    for (int64_t i = 0; i < length(program.slots()); ++i)
      if (std::string e = slotError(*program.slots()->Get(i)); !e.empty())
        return "slot " + number(i) + " " + e;
    for (int64_t i = 0; i < length(program.slots()); ++i)
      if (std::string e = membersError(*program.slots()->Get(i)); !e.empty())
        return "slot " + number(i) + " " + e;
    for (int64_t i = 0; i < length(program.load()); ++i)
      if (std::string e = instructionError(program.load()->Get(i), true);
          !e.empty())
        return "load instruction " + number(i) + " " + e;
    for (const abi::Unit &unit : each(program.units()))
      if (std::string e = unitError(unit); !e.empty())
        return "unit " + quoted(unit.name()) + " " + e;
    for (int64_t i = 0; i < length(program.actions()); ++i)
      if (std::string e = actionError(i); !e.empty())
        return "action " + number(i) + " " + e;
    return "";
  }

private:
  std::string frameError(const abi::Frame &frame) const {
    if (!inRange(frame.bytes(), program.arena_bytes() + 1))
      return "has " + number(frame.bytes()) + " bytes in an arena of " +
             number(program.arena_bytes());
    if (!isAligned(frame.copies()))
      return "has a list of copies that is not aligned";
    const int64_t count = length(frame.copies());
    if (count < 1 || count > plan.micro_batches())
      return "has " + number(count) + " copies for " +
             number(plan.micro_batches()) + " micro-batches";
    for (int64_t i = 0; i < count; ++i)
      if (std::string e = regionError(frame.copies()->Get(i), frame.bytes(),
                                      program.arena_bytes(), "arena");
          !e.empty())
        return "has a copy " + number(i) + " that " + e;
    return "";
  }

  /// Devices count the micro-batches of all sequences
  /// (runtime::sequenceStride).
  std::string sequencesError() const {
    constexpr int64_t kMost = int64_t(1) << 24;
    int64_t stride = plan.micro_batches();
    for (int64_t i = 0; i < length(program.frames()) && stride <= kMost; ++i)
      stride = std::lcm(stride, length(program.frames()->Get(i)->copies()));
    return plan.sequences() == 1 || stride <= kMost / plan.sequences()
               ? ""
               : "has too many copies of frames for " +
                     number(plan.sequences()) + " sequences";
  }

  /// A lane lies where the sum lies for some micro-batches.
  std::string laneError(const abi::Slot &slot) const {
    if (slot.sum() == -1)
      return "";
    PARTITA_RETURN_ERROR(
        indexError("is a lane of slot", slot.sum(), program.slots()));
    const abi::Slot &sum = *program.slots()->Get(slot.sum());
    if (slot.span() != abi::Span::sum || slot.space() != abi::Space::arena ||
        sum.span() != abi::Span::sum || sum.space() != abi::Space::frame ||
        !inRange(sum.frame(), length(program.frames())))
      return "is a lane, and is no sum in the arena, or of no sum in a frame";
    const abi::Frame &frame = *program.frames()->Get(sum.frame());
    if (std::string e =
            regionError(sum.offset(), sum.bytes(), frame.bytes(), "frame");
        !e.empty())
      return "is a lane of a sum that " + e;
    if (!inRange(slot.lane(), length(frame.copies())))
      return "is lane " + number(slot.lane()) + " of " +
             number(length(frame.copies()));
    if (slot.offset() != frame.copies()->Get(slot.lane()) + sum.offset() ||
        slot.bytes() != sum.bytes())
      return "lies elsewhere than the lane that it is";
    return "";
  }

  /// Of slots that lie in their regions, as all do that `slotError` has seen.
  std::string membersError(const abi::Slot &slot) const {
    for (int64_t i = 0; i < length(slot.members()); ++i) {
      const int joined = slot.members()->Get(i);
      PARTITA_RETURN_ERROR(indexError("joins slot", joined, program.slots()));
      const abi::Slot &member = *program.slots()->Get(joined);
      if (slot.space() != abi::Space::arena ||
          member.space() != abi::Space::arena || length(member.members()) ||
          member.span() != slot.span() || member.dtype() != slot.dtype())
        return "joins what is not in the arena, or of another span or type";
      if (member.offset() < slot.offset() ||
          member.offset() + member.bytes() > slot.offset() + slot.bytes())
        return "joins what lies elsewhere";
    }
    return "";
  }

  std::string slotError(const abi::Slot &slot) const {
    PARTITA_RETURN_ERROR(sizeError(slot.dtype(), slot.shape(), slot.bytes()));
    if (!inRange(static_cast<int>(slot.span()),
                 static_cast<int>(abi::Span::MAX) + 1))
      return "has an unknown span";
    const bool hasLanes =
        slot.span() == abi::Span::sum && slot.space() == abi::Space::frame;
    if (slot.span() != abi::Span::micro_batch &&
        slot.space() != abi::Space::arena && !hasLanes)
      return "holds a value for a whole step, and is not in the arena";
    PARTITA_RETURN_ERROR(laneError(slot));
    if (slot.span() == abi::Span::sum && !plan.full_steps())
      return "sums micro-batches up, in a plan whose steps may lack some";
    if (slot.space() != abi::Space::frame && slot.frame() != -1)
      return "names frame " + number(slot.frame()) + ", but lies in none";
    switch (slot.space()) {
    case abi::Space::arena:
      return regionError(slot.offset(), slot.bytes(), program.arena_bytes(),
                         "arena");
    case abi::Space::frame:
      PARTITA_RETURN_ERROR(
          indexError("names frame", slot.frame(), program.frames()));
      return regionError(slot.offset(), slot.bytes(),
                         program.frames()->Get(slot.frame())->bytes(), "frame");
    case abi::Space::constant:
      return regionError(slot.offset(), slot.bytes(), program.constant_bytes(),
                         "constant region");
    case abi::Space::weight:
      PARTITA_RETURN_ERROR(
          indexError("names weight", slot.offset(), plan.weights()));
      if (plan.weights()->Get(slot.offset())->bytes() != slot.bytes())
        return "has another size than its weight";
      return "";
    case abi::Space::state:
      PARTITA_RETURN_ERROR(
          indexError("names state", slot.offset(), plan.states()));
      if (partBytes(*plan.states()->Get(slot.offset())) != slot.bytes())
        return "has another size than its state";
      return "";
    }
    return "lies in an unknown space";
  }

  static std::string regionError(int64_t offset, int64_t bytes, int64_t size,
                                 const char *region) {
    if (offset < 0 || offset > size || bytes > size - offset)
      return std::string("reaches past the end of the ") + region;
    if (offset % abi::kSlotAlignment != 0)
      return "is not aligned to 64 bytes";
    return "";
  }

  bool isSlot(int64_t slot) const {
    return inRange(slot, length(program.slots()));
  }

  /// Of a slot that must be there.
  std::string slotIndexError(int64_t slot) const {
    return indexError("names slot", slot, program.slots());
  }

  /// Whether an action may write there.
  static bool isWritable(const abi::Slot &slot) {
    return slot.space() == abi::Space::arena ||
           slot.space() == abi::Space::frame ||
           slot.space() == abi::Space::state;
  }

  std::string instructionError(const abi::Instruction *instruction,
                               bool loads) const {
    if (!instruction || !instruction->work())
      return "is missing";
    std::string error;
    switch (instruction->work_type()) {
    case abi::Work::Dispatch:
      error = dispatchError(*instruction->work_as_Dispatch());
      break;
    case abi::Work::Call:
      error = callError(program, *instruction->work_as_Call());
      if (error.empty())
        error = sumError(*instruction->work_as_Call());
      break;
    case abi::Work::Copy:
      error = copyError(*instruction->work_as_Copy());
      break;
    case abi::Work::Slice:
      error = sliceError(*instruction->work_as_Slice());
      break;
    default:
      error = "is of an unknown kind";
    }
    if (error.empty())
      forEachSlot(*instruction, [&](const SlotUse &used) {
        if (error.empty())
          error = useError(used, loads);
      });
    return error.empty() ? "" : quoted(instruction->label()) + " " + error;
  }

  /// Of what a call adds upon: until then it has the bytes of the result.
  std::string sumError(const abi::Call &call) const {
    const abi::Slot &after = *program.slots()->Get(
        call.operands()->Get(length(call.operands()) - 1)->slot());
    for (int64_t i = 0; i < length(call.post_ops()); ++i) {
      const abi::PostOp &post = *call.post_ops()->Get(i);
      if (post.before() == -1)
        continue;
      if (post.kind() != abi::PostOpKind::sum || !isSlot(post.before()))
        return "post-op " + number(i) + " adds upon slot " +
               number(post.before()) + " of " + number(length(program.slots()));
      const abi::Slot &before = *program.slots()->Get(post.before());
      if (before.space() != after.space() || before.frame() != after.frame() ||
          before.offset() != after.offset() || before.bytes() != after.bytes())
        return "adds upon a slot that has other bytes than the result";
    }
    return "";
  }

  std::string useError(const SlotUse &used, bool loads) const {
    const abi::Slot &slot = *program.slots()->Get(used.slot);
    // What is loaded is loaded for all micro-batches.
    if (loads && slot.space() == abi::Space::frame)
      return "uses slot " + number(used.slot) + ", which a micro-batch has";
    if (loads && slot.space() == abi::Space::state)
      return "uses slot " + number(used.slot) + ", a state, when loading";
    if (used.written && slot.space() == abi::Space::state && !plan.full_steps())
      return "writes a state, in a plan whose steps may lack micro-batches";
    if (!used.written || isWritable(slot) ||
        (loads && slot.space() == abi::Space::constant))
      return "";
    return "writes slot " + number(used.slot) + ", which is read only";
  }

  std::string dispatchError(const abi::Dispatch &dispatch) const {
    PARTITA_RETURN_ERROR(
        indexError("names kernel", dispatch.kernel(), plan.kernels()));
    const abi::Kernel &kernel = *plan.kernels()->Get(dispatch.kernel());
    for (const abi::Device *device : *plan.devices())
      if (device->program() == index &&
          abi::launchesGrids(device->kind()) != (kernel.launch() != nullptr))
        return "starts kernel " + quoted(kernel.name()) + ", which has " +
               (kernel.launch() ? "a" : "no") + " launch, on device " +
               quoted(device->name());
    for (int64_t i = 0; i < length(dispatch.operands()); ++i)
      PARTITA_RETURN_ERROR(slotIndexError(dispatch.operands()->Get(i)));
    if (dispatch.results() < 1 ||
        dispatch.results() > length(dispatch.operands()))
      return "has " + number(dispatch.results()) + " results among " +
             number(length(dispatch.operands())) + " operands";
    if (dispatch.extent() < 0 || dispatch.grain() < 1)
      return "has an impossible extent or grain";
    return "";
  }

  std::string copyError(const abi::Copy &copy) const {
    if (!isSlot(copy.source()) || !isSlot(copy.destination()))
      return "copies from or to a slot that does not exist";
    if (program.slots()->Get(copy.source())->bytes() !=
        program.slots()->Get(copy.destination())->bytes())
      return "copies between slots of different sizes";
    return "";
  }

  std::string sliceError(const abi::Slice &slice) const {
    if (!isSlot(slice.source()) || !isSlot(slice.destination()))
      return "takes a part of a slot, or puts it into one, that does not exist";
    const abi::Slot &from = *program.slots()->Get(slice.source()),
                    &to = *program.slots()->Get(slice.destination());
    const int64_t devices = groupSize(plan, slice.axes());
    if (!length(slice.axes()) || devices == 0)
      return "is along axes that the mesh does not have";
    const int64_t elements = elementsOf(slice.rows(), slice.part(), devices);
    const int64_t whole = elements * elementBytes(from.dtype());
    if (elements < 0 || from.dtype() != to.dtype() || from.bytes() > whole ||
        to.bytes() * devices != whole ||
        (slice.rows() && from.bytes() % slice.rows()))
      return "takes a part of " + number(to.bytes()) + " bytes of " +
             number(from.bytes()) + ", for " + number(devices) + " devices";
    return "";
  }

  std::string unitError(const abi::Unit &unit) const {
    PARTITA_RETURN_ERROR(
        indexError("names stage", unit.stage(), plan.stages()));
    for (int64_t i = 0; i < length(unit.instructions()); ++i)
      if (std::string e = instructionError(unit.instructions()->Get(i), false);
          !e.empty())
        return "instruction " + number(i) + " " + e;
    return "";
  }

  std::string actionError(int64_t position) const {
    if (!inRange(program.actions()->Get(position)->kind(), abi::kActionKinds))
      return "is of an unknown kind";
    const abi::ProgramAction action = actionOf(program, position);
    if (!inRange(action.micro_batch, plan.micro_batches()))
      return "is of micro-batch " + number(action.micro_batch) + " of " +
             number(plan.micro_batches());
    const abi::ActionInfo &info = abi::getInfo(action.kind);
    if (action.slot != -1 && info.access == abi::SlotAccess::none)
      return "names slot " + number(action.slot) + ", but an action '" +
             info.name + "' has none";
    if (action.slot != -1)
      PARTITA_RETURN_ERROR(slotIndexError(action.slot));
    if (action.slot != -1 && info.access == abi::SlotAccess::written &&
        !isWritable(*program.slots()->Get(action.slot)))
      return "writes slot " + number(action.slot) + ", which is read only";
    // Their places are looked up once; units find those of a sequence.
    if (action.slot != -1 && plan.sequences() > 1 &&
        program.slots()->Get(action.slot)->space() == abi::Space::state)
      return "is of slot " + number(action.slot) +
             ", a state, in a plan for several sequences";
    switch (info.subject) {
    case abi::ActionSubject::unit:
      return indexError("runs unit", action.subject, program.units());
    case abi::ActionSubject::sent_channel:
    case abi::ActionSubject::received_channel:
      return transferError(action, info);
    case abi::ActionSubject::input:
      return portError(action, plan.inputs(), "names input");
    case abi::ActionSubject::output:
      return portError(action, plan.outputs(), "names output");
    case abi::ActionSubject::collective:
      return collectiveError(action);
    case abi::ActionSubject::check:
      return checkError(action);
    }
    return "is of an unknown kind";
  }

  std::string transferError(const abi::ProgramAction &action,
                            const abi::ActionInfo &info) const {
    PARTITA_RETURN_ERROR(
        indexError("uses channel", action.subject, plan.channels()));
    const abi::Channel &channel = *plan.channels()->Get(action.subject);
    const bool sends = info.subject == abi::ActionSubject::sent_channel;
    if ((sends ? channel.source() : channel.target()) != index)
      return std::string(sends ? "sends on" : "receives on") + " channel " +
             number(action.subject) + ", which is another program's to do";
    if (info.access == abi::SlotAccess::none)
      return "";
    const int64_t bytes =
        action.slot == -1 ? 0 : program.slots()->Get(action.slot)->bytes();
    if (bytes != channel.bytes())
      return "moves " + number(bytes) + " bytes on channel " +
             number(action.subject) + " of " + number(channel.bytes());
    return "";
  }

  std::string collectiveError(const abi::ProgramAction &action) const {
    PARTITA_RETURN_ERROR(
        indexError("names collective", action.subject, plan.collectives()));
    const abi::Collective &collective =
        *plan.collectives()->Get(action.subject);
    if (collective.program() != index)
      return "names collective " + number(action.subject) +
             ", which is another program's";
    PARTITA_RETURN_ERROR(slotIndexError(action.slot));
    const bool starts = action.kind == abi::ActionKind::start;
    using Kind = abi::CollectiveKind;
    const bool isWhole =
        collective.kind() == Kind::all_to_all ||
        collective.kind() == (starts ? Kind::reduce_scatter : Kind::all_gather);
    const int64_t elements =
        elementsOf(collective.rows(), collective.part(),
                   isWhole ? groupSize(plan, collective.axes()) : 1);
    const abi::Slot &slot = *program.slots()->Get(action.slot);
    if (slot.dtype() != collective.dtype() ||
        slot.bytes() != elements * elementBytes(slot.dtype()))
      return "moves " + quoted(collective.name()) +
             " through a slot of another type or size";
    return "";
  }

  std::string checkError(const abi::ProgramAction &action) const {
    PARTITA_RETURN_ERROR(
        indexError("names check", action.subject, plan.checks()));
    PARTITA_RETURN_ERROR(slotIndexError(action.slot));
    const abi::Check &check = *plan.checks()->Get(action.subject);
    const abi::Slot &slot = *program.slots()->Get(action.slot);
    if (slot.dtype() != abi::DType::i64 ||
        slot.bytes() != check.rows() * 2 * elementBytes(slot.dtype()))
      return "looks at the indices of " + quoted(check.node()) +
             " in a slot of another type or size";
    return "";
  }

  std::string
  portError(const abi::ProgramAction &action,
            const flatbuffers::Vector<flatbuffers::Offset<abi::Port>> *ports,
            const char *names) const {
    PARTITA_RETURN_ERROR(indexError(names, action.subject, ports));
    const abi::Port &port = *ports->Get(action.subject);
    PARTITA_RETURN_ERROR(slotIndexError(action.slot));
    const abi::Slot &slot = *program.slots()->Get(action.slot);
    if (slot.dtype() != port.dtype() ||
        slot.bytes() != elementCount(port.shape()) * elementBytes(port.dtype()))
      return "moves " + quoted(port.name()) +
             " through a slot of another type or size";
    return "";
  }

  const abi::Plan &plan;
  const int index;
  const abi::Program &program;
};

} // namespace

std::string programError(const abi::Plan &plan, int index) {
  return ProgramVerifier(plan, index).verify();
}

} // namespace partita::runtime
