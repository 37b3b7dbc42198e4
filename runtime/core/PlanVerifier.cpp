//===- PlanVerifier.cpp - Trust nothing in a plan -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/PlanVerifier.h"

#include "runtime/abi/artifact.h"
#include "runtime/core/Slots.h"

#include <algorithm>
#include <set>

namespace partita::runtime {
namespace {

/// No machine has regions beyond this, and sums of a few such cannot overflow.
constexpr int64_t kLargestRegion = int64_t(1) << 48;
constexpr int64_t kMostMicroBatches = 1 << 20;
constexpr int64_t kMostArguments = 1 << 16;

using Longs = flatbuffers::Vector<int64_t>;

std::string number(int64_t value) { return std::to_string(value); }

std::string quoted(const flatbuffers::String *name) {
  return std::string("'") + text(name) + "'";
}

bool inRange(int64_t index, int64_t count) {
  return index >= 0 && index < count;
}

std::string sizeError(abi::DType dtype, const Longs *shape, int64_t bytes) {
  int64_t count = elementBytes(dtype);
  if (count == 0)
    return "has an unknown element type";
  bool empty = false;
  for (int64_t i = 0; i < length(shape); ++i) {
    if (shape->Get(i) < 0)
      return "has the negative extent " + number(shape->Get(i));
    empty |= shape->Get(i) == 0;
    // An extent of 0 must not hide an overflow of the others.
    if (!checkedMul(count, std::max<int64_t>(shape->Get(i), 1), count))
      return "has more elements than can be counted";
  }
  int64_t expected = empty ? 0 : count;
  if (bytes != expected)
    return "says it has " + number(bytes) + " bytes where its shape needs " +
           number(expected);
  return "";
}

/// Checks one device: its slots, units, load program and program.
class DeviceVerifier {
public:
  DeviceVerifier(const abi::Plan &plan, int index)
      : plan(plan), index(index), device(*plan.devices()->Get(index)) {}

  std::string verify() {
    if (!inRange(device.arena_bytes(), kLargestRegion) ||
        !inRange(device.constant_bytes(), kLargestRegion))
      return "has an impossible arena or constant region";
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
                               std::vector<Argument> *arguments) const {
    if (!instruction || !instruction->work())
      return "is missing";
    std::string error;
    switch (instruction->work_type()) {
    case abi::Work::Dispatch:
      error = dispatchError(*instruction->work_as_Dispatch());
      break;
    case abi::Work::LibraryCall:
      error = libraryCallError(device, *instruction->work_as_LibraryCall());
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
    units.push_back(std::move(arguments));
    return "";
  }

  std::string stepError(const abi::Step &step) const {
    if (!inRange(step.micro_batch(), plan.micro_batches()))
      return "is of micro-batch " + number(step.micro_batch()) + " of " +
             number(plan.micro_batches());
    switch (step.kind()) {
    case abi::StepKind::run:
      return runError(step);
    case abi::StepKind::send:
    case abi::StepKind::recv:
    case abi::StepKind::wait:
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
    const std::vector<Argument> &arguments = units[step.unit()];
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
    return "";
  }

  std::string transferError(const abi::Step &step) const {
    if (!inRange(step.channel(), length(plan.channels())))
      return "uses channel " + number(step.channel()) + " of " +
             number(length(plan.channels()));
    const abi::Channel &channel = *plan.channels()->Get(step.channel());
    bool receives = step.kind() == abi::StepKind::recv;
    int self = receives ? channel.target() : channel.source();
    int peer = receives ? channel.source() : channel.target();
    if (self != index)
      return "uses channel " + number(step.channel()) +
             ", which belongs to other devices";
    if (step.kind() == abi::StepKind::wait)
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
  std::vector<std::vector<Argument>> units;
};

/// Checks the tables of the whole plan.
class PlanTables {
public:
  PlanTables(const abi::Plan &plan, int64_t weights_bytes)
      : plan(plan), weights_bytes(weights_bytes) {}

  std::string verify() const {
    if (plan.micro_batches() < 1 || plan.micro_batches() > kMostMicroBatches)
      return "says it has " + number(plan.micro_batches()) + " micro-batches";
    if (!length(plan.devices()))
      return "has no device";
    for (const auto *ports :
         {plan.inputs(), plan.outputs(), plan.bound_inputs()})
      for (int64_t i = 0; i < length(ports); ++i)
        if (std::string e = portError(*ports->Get(i)); !e.empty())
          return "input or output " + quoted(ports->Get(i)->name()) + " " + e;
    for (int64_t i = 0; i < length(plan.weights()); ++i)
      if (std::string e = weightError(*plan.weights()->Get(i)); !e.empty())
        return "weight " + quoted(plan.weights()->Get(i)->name()) + " " + e;
    for (int64_t i = 0; i < length(plan.kernels()); ++i)
      if (!isSymbol(plan.kernels()->Get(i)->name()))
        return "kernel " + number(i) + " has no usable name";
    for (int64_t i = 0; i < length(plan.stages()); ++i)
      if (plan.stages()->Get(i)->device() != -1 &&
          !isDevice(plan.stages()->Get(i)->device()))
        return "stage " + number(i) + " names a device that does not exist";
    for (int64_t i = 0; i < length(plan.channels()); ++i) {
      const abi::Channel &channel = *plan.channels()->Get(i);
      if (!isDevice(channel.source()) || !isDevice(channel.target()) ||
          channel.source() == channel.target())
        return "channel " + number(i) + " does not join two devices";
      if (!inRange(channel.bytes(), kLargestRegion))
        return "channel " + number(i) + " has an impossible size";
    }
    for (int64_t i = 0; i < length(plan.devices()); ++i)
      if (std::string e = DeviceVerifier(plan, i).verify(); !e.empty())
        return "device " + quoted(plan.devices()->Get(i)->name()) + ": " + e;
    return storesError();
  }

private:
  bool isDevice(int64_t device) const {
    return inRange(device, length(plan.devices()));
  }

  static bool isSymbol(const flatbuffers::String *name) {
    return length(name) && std::all_of(name->begin(), name->end(), [](char c) {
             return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                    (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '$';
           });
  }

  std::string portError(const abi::Port &port) const {
    int64_t count = elementBytes(port.dtype());
    for (int64_t i = 0; i < length(port.shape()); ++i)
      if (port.shape()->Get(i) < 0 ||
          !checkedMul(count, std::max<int64_t>(port.shape()->Get(i), 1), count))
        return "has an impossible shape";
    if (count == 0)
      return "has an unknown element type";
    if (!inRange(port.batch_axis() + int64_t(1), length(port.shape()) + 1))
      return "has no axis " + number(port.batch_axis());
    return "";
  }

  std::string weightError(const abi::Weight &weight) const {
    if (std::string e =
            sizeError(weight.dtype(), weight.shape(), weight.bytes());
        !e.empty())
      return e;
    int64_t end;
    if (weight.offset() < 0 ||
        !checkedAdd(weight.offset(), weight.bytes(), end))
      return "has an impossible offset";
    if (length(weight.file()))
      return "";
    if (end > weights_bytes)
      return "reaches past the end of the weights section";
    if (weight.offset() % abi::kSlotAlignment != 0)
      return "is not aligned to 64 bytes";
    return "";
  }

  /// Every output of every micro-batch is stored once, by one device.
  std::string storesError() const {
    std::set<std::pair<int, int>> stored;
    for (const abi::Device *device : *plan.devices())
      for (int64_t i = 0; i < length(device->program()); ++i) {
        const abi::Step &step = *device->program()->Get(i);
        if (step.kind() == abi::StepKind::store_output &&
            !stored.emplace(step.io(), step.micro_batch()).second)
          return "output " + quoted(plan.outputs()->Get(step.io())->name()) +
                 " of micro-batch " + number(step.micro_batch()) +
                 " is stored twice";
      }
    for (int64_t i = 0; i < length(plan.outputs()); ++i)
      for (int m = 0; m < plan.micro_batches(); ++m)
        if (!stored.count({static_cast<int>(i), m}))
          return "output " + quoted(plan.outputs()->Get(i)->name()) +
                 " of micro-batch " + number(m) + " is never stored";
    return "";
  }

  const abi::Plan &plan;
  const int64_t weights_bytes;
};

} // namespace

Status verifyPlan(const abi::Plan &plan, const std::string &path,
                  int64_t weights_bytes) {
  std::string error = PlanTables(plan, weights_bytes).verify();
  if (error.empty())
    error = abi::checkSchedule(scheduleModel(plan));
  if (error.empty())
    return Status();
  return Status::error("'" + path + "': the plan is wrong: " + error +
                       ": compile the model again");
}

} // namespace partita::runtime
