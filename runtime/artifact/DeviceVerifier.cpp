//===- DeviceVerifier.cpp - Slots, units and program of one device --------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/artifact/PlanChecks.h"
#include "runtime/artifact/PlanVerifier.h"
#include "runtime/base/Slots.h"

#include <tuple>

namespace partita::runtime {
namespace {

/// Checks one device: its slots, units, load program and program.
class DeviceVerifier {
public:
  DeviceVerifier(const abi::Plan &plan, int index)
      : plan(plan), index(index), device(*plan.devices()->Get(index)) {}

  std::string verify() {
    if (!inRange(device.arena_bytes(), kLargestRegion) ||
        !inRange(device.constant_bytes(), kLargestRegion) ||
        !inRange(device.parameter_bytes(), kLargestRegion) ||
        !inRange(device.packed_bytes(), kLargestRegion) ||
        !inRange(device.workspace_bytes(), kLargestRegion))
      return "has impossible sizes of its memory";
    for (int64_t i = 0; i < length(device.slots()); ++i)
      if (std::string e = slotError(*device.slots()->Get(i)); !e.empty())
        return "slot " + number(i) + " " + e;
    for (int64_t i = 0; i < length(device.load()); ++i)
      if (std::string e = instructionError(device.load()->Get(i), nullptr);
          !e.empty())
        return "load instruction " + number(i) + " " + e;
    for (int64_t i = 0; i < length(device.units()); ++i)
      if (std::string e = unitError(*device.units()->Get(i)); !e.empty())
        return "unit " + quoted(device.units()->Get(i)->name()) + " " + e;
    for (int64_t i = 0; i < length(device.program()); ++i)
      if (std::string e = stepError(*device.program()->Get(i)); !e.empty())
        return "step " + number(i) + " " + e;
    return "";
  }

private:
  /// What a unit asks of the slot bound to one of its arguments.
  struct Argument {
    int64_t bytes = 0;
    bool written = false;
  };
  /// Two slots of a unit, maybe arguments, that must be the same bytes.
  using SameBytes = std::pair<int, int>;

  std::string slotError(const abi::Slot &slot) const {
    if (std::string e = sizeError(slot.dtype(), slot.shape(), slot.bytes());
        !e.empty())
      return e;
    switch (slot.space()) {
    case abi::Space::arena:
      return regionError(slot, device.arena_bytes(), "arena");
    case abi::Space::constant:
      return regionError(slot, device.constant_bytes(), "constant region");
    case abi::Space::weight:
      if (!inRange(slot.offset(), length(plan.weights())))
        return "names weight " + number(slot.offset()) + " of " +
               number(length(plan.weights()));
      if (plan.weights()->Get(slot.offset())->bytes() != slot.bytes())
        return "has another size than its weight";
      return "";
    case abi::Space::argument:
      return inRange(slot.offset(), kMostArguments) ? "" : "is no argument's";
    }
    return "lies in an unknown space";
  }

  static std::string regionError(const abi::Slot &slot, int64_t bytes,
                                 const char *region) {
    if (slot.offset() < 0 || slot.offset() > bytes ||
        slot.bytes() > bytes - slot.offset())
      return std::string("reaches past the end of the ") + region;
    if (slot.offset() % abi::kSlotAlignment != 0)
      return "is not aligned to 64 bytes";
    return "";
  }

  bool isSlot(int64_t slot) const {
    return inRange(slot, length(device.slots()));
  }

  /// `arguments`: those of the unit, or null in the load program.
  std::string instructionError(const abi::Instruction *instruction,
                               std::vector<Argument> *arguments) {
    if (!instruction || !instruction->work())
      return "is missing";
    std::string error;
    switch (instruction->work_type()) {
    case abi::Work::Dispatch:
      error = dispatchError(*instruction->work_as_Dispatch());
      break;
    case abi::Work::LibraryCall:
      error = libraryCallError(device, *instruction->work_as_LibraryCall());
      if (error.empty())
        error = sumError(*instruction->work_as_LibraryCall(), arguments);
      break;
    case abi::Work::Copy:
      error = copyError(*instruction->work_as_Copy());
      break;
    default:
      error = "is of an unknown kind";
    }
    if (error.empty())
      forEachSlot(*instruction, [&](const SlotUse &used) {
        if (error.empty())
          error = useError(used, arguments);
      });
    return error.empty() ? "" : quoted(instruction->label()) + " " + error;
  }

  /// Of what a call adds upon: until then it has the bytes of the result.
  std::string sumError(const abi::LibraryCall &call,
                       const std::vector<Argument> *arguments) {
    for (int64_t i = 0; i < length(call.post_ops()); ++i) {
      const abi::PostOp &post = *call.post_ops()->Get(i);
      if (post.before() == -1)
        continue;
      if (post.kind() != abi::PostOpKind::sum || !isSlot(post.before()))
        return "post-op " + number(i) + " adds upon slot " +
               number(post.before()) + " of " + number(length(device.slots()));
      const SameBytes pair(
          post.before(),
          call.operands()->Get(length(call.operands()) - 1)->slot());
      if (arguments)
        same_bytes.push_back(pair);
      else if (std::string error = sameBytesError(pair, nullptr);
               !error.empty())
        return error;
    }
    return "";
  }

  std::string sameBytesError(const SameBytes &pair,
                             const abi::Step *step) const {
    auto bound = [&](int slot) {
      const abi::Slot *found = device.slots()->Get(slot);
      return step && found->space() == abi::Space::argument
                 ? device.slots()->Get(step->bindings()->Get(found->offset()))
                 : found;
    };
    const abi::Slot &before = *bound(pair.first), &after = *bound(pair.second);
    return before.space() == after.space() &&
                   before.offset() == after.offset() &&
                   before.bytes() == after.bytes()
               ? ""
               : "adds upon a slot that has other bytes than the result";
  }

  std::string useError(const SlotUse &used,
                       std::vector<Argument> *arguments) const {
    const abi::Slot &slot = *device.slots()->Get(used.slot);
    if (slot.space() == abi::Space::argument) {
      int64_t count = arguments ? static_cast<int64_t>(arguments->size()) : 0;
      if (slot.offset() >= count)
        return "uses argument " + number(slot.offset()) + " of " +
               number(count);
      Argument &argument = (*arguments)[slot.offset()];
      argument.bytes = std::max(argument.bytes, slot.bytes());
      argument.written |= used.written;
      return "";
    }
    if (!used.written || slot.space() == abi::Space::arena)
      return "";
    if (slot.space() == abi::Space::constant && !arguments)
      return "";
    return "writes slot " + number(used.slot) + ", which is read only";
  }

  std::string dispatchError(const abi::Dispatch &dispatch) const {
    if (!inRange(dispatch.kernel(), length(plan.kernels())))
      return "names kernel " + number(dispatch.kernel()) + " of " +
             number(length(plan.kernels()));
    for (int64_t i = 0; i < length(dispatch.operands()); ++i)
      if (!isSlot(dispatch.operands()->Get(i)))
        return "names slot " + number(dispatch.operands()->Get(i)) + " of " +
               number(length(device.slots()));
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
    if (device.slots()->Get(copy.source())->bytes() !=
        device.slots()->Get(copy.destination())->bytes())
      return "copies between slots of different sizes";
    return "";
  }

  std::string unitError(const abi::Unit &unit) {
    if (!inRange(unit.stage(), length(plan.stages())))
      return "names stage " + number(unit.stage()) + " of " +
             number(length(plan.stages()));
    if (!inRange(unit.arguments(), kMostArguments))
      return "has " + number(unit.arguments()) + " arguments";
    std::vector<Argument> arguments(unit.arguments());
    for (int64_t i = 0; i < length(unit.instructions()); ++i)
      if (std::string e =
              instructionError(unit.instructions()->Get(i), &arguments);
          !e.empty())
        return "instruction " + number(i) + " " + e;
    units.push_back({std::move(arguments), std::move(same_bytes)});
    same_bytes.clear();
    return "";
  }

  std::string stepError(const abi::Step &step) const {
    if (!inRange(step.micro_batch(), plan.micro_batches()))
      return "is of micro-batch " + number(step.micro_batch()) + " of " +
             number(plan.micro_batches());
    // Of every kind, also where the kind does not use it.
    for (auto [value, count, what] :
         {std::tuple(step.unit(), length(device.units()), "unit "),
          std::tuple(step.slot(), length(device.slots()), "slot "),
          std::tuple(step.channel(), length(plan.channels()), "channel "),
          std::tuple(step.peer(), length(plan.devices()), "device ")})
      if (value != -1 && !inRange(value, count))
        return std::string("names ") + what + number(value) + " of " +
               number(count);
    switch (step.kind()) {
    case abi::StepKind::run:
      return runError(step);
    case abi::StepKind::send:
    case abi::StepKind::recv:
    case abi::StepKind::wait:
    case abi::StepKind::release:
      return transferError(step);
    case abi::StepKind::load_input:
      return portError(step, plan.inputs(), true);
    case abi::StepKind::store_output:
      return portError(step, plan.outputs(), false);
    }
    return "is of an unknown kind";
  }

  std::string runError(const abi::Step &step) const {
    if (!inRange(step.unit(), length(device.units())))
      return "runs unit " + number(step.unit()) + " of " +
             number(length(device.units()));
    const std::vector<Argument> &arguments = units[step.unit()].arguments;
    if (length(step.bindings()) != static_cast<int64_t>(arguments.size()))
      return "binds " + number(length(step.bindings())) + " slots to " +
             number(arguments.size()) + " arguments";
    for (size_t i = 0; i < arguments.size(); ++i) {
      std::string name = "binds to argument " + number(i) + " ";
      int slot = step.bindings()->Get(i);
      if (!isSlot(slot))
        return name + "slot " + number(slot) + " of " +
               number(length(device.slots()));
      const abi::Slot &bound = *device.slots()->Get(slot);
      if (bound.space() == abi::Space::argument)
        return name + "another argument";
      if (bound.bytes() < arguments[i].bytes)
        return name + "a slot of " + number(bound.bytes()) +
               " bytes where it needs " + number(arguments[i].bytes);
      if (arguments[i].written && bound.space() != abi::Space::arena)
        return name + "read-only memory, which the unit writes";
    }
    for (const SameBytes &pair : units[step.unit()].same_bytes)
      if (std::string error = sameBytesError(pair, &step); !error.empty())
        return "runs a unit in which a call " + error;
    return "";
  }

  std::string transferError(const abi::Step &step) const {
    if (!inRange(step.channel(), length(plan.channels())))
      return "uses channel " + number(step.channel()) + " of " +
             number(length(plan.channels()));
    const abi::Channel &channel = *plan.channels()->Get(step.channel());
    bool receives = step.kind() == abi::StepKind::recv ||
                    step.kind() == abi::StepKind::release;
    int self = receives ? channel.target() : channel.source();
    int peer = receives ? channel.source() : channel.target();
    if (self != index)
      return "uses channel " + number(step.channel()) +
             ", which belongs to other devices";
    if (step.kind() == abi::StepKind::wait ||
        step.kind() == abi::StepKind::release)
      return "";
    if (step.peer() != peer)
      return "names device " + number(step.peer()) +
             " as its peer where channel " + number(step.channel()) + " says " +
             number(peer);
    int64_t bytes = 0;
    if (step.slot() != -1) {
      if (!isSlot(step.slot()))
        return "names slot " + number(step.slot()) + " of " +
               number(length(device.slots()));
      const abi::Slot &slot = *device.slots()->Get(step.slot());
      bytes = slot.bytes();
      if (slot.space() == abi::Space::argument ||
          (receives && slot.space() != abi::Space::arena))
        return "names a slot that is not in the arena";
    }
    if (bytes != channel.bytes())
      return "moves " + number(bytes) + " bytes on channel " +
             number(step.channel()) + " of " + number(channel.bytes());
    return "";
  }

  std::string
  portError(const abi::Step &step,
            const flatbuffers::Vector<flatbuffers::Offset<abi::Port>> *ports,
            bool input) const {
    if (!inRange(step.io(), length(ports)))
      return "names input or output " + number(step.io()) + " of " +
             number(length(ports));
    const abi::Port &port = *ports->Get(step.io());
    if (!isSlot(step.slot()))
      return "names slot " + number(step.slot()) + " of " +
             number(length(device.slots()));
    const abi::Slot &slot = *device.slots()->Get(step.slot());
    if (slot.space() == abi::Space::argument ||
        (input && slot.space() != abi::Space::arena))
      return "names a slot that is not in the arena";
    if (slot.dtype() != port.dtype() ||
        slot.bytes() != elementCount(port.shape()) * elementBytes(port.dtype()))
      return "moves " + quoted(port.name()) +
             " through a slot of another type or size";
    return "";
  }

  const abi::Plan &plan;
  const int index;
  const abi::Device &device;
  struct Unit {
    std::vector<Argument> arguments;
    std::vector<SameBytes> same_bytes;
  };
  std::vector<Unit> units;
  std::vector<SameBytes> same_bytes; ///< of the unit at hand
};

} // namespace

std::string deviceError(const abi::Plan &plan, int index) {
  return DeviceVerifier(plan, index).verify();
}

} // namespace partita::runtime
