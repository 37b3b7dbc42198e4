//===- PlanVerifier.cpp - Trust nothing in a plan -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/artifact/PlanVerifier.h"

#include "runtime/artifact/PlanChecks.h"
#include "runtime/base/Mesh.h"
#include "runtime/base/Programs.h"
#include "runtime/base/StateParts.h"

#include <map>
#include <set>
#include <string_view>

namespace partita::runtime {
namespace {

/// Checks the tables of the whole plan.
class PlanTables {
public:
  PlanTables(const abi::Plan &plan, int64_t weights_bytes)
      : plan(plan), weights_bytes(weights_bytes) {}

  std::string verify() const {
    if (plan.micro_batches() < 1 || plan.micro_batches() > kMostMicroBatches)
      return "says it has " + number(plan.micro_batches()) + " micro-batches";
    if (plan.sequences() < 1 || plan.sequences() > kMostMicroBatches ||
        (plan.sequences() > 1 && !plan.full_steps()))
      return "says it has " + number(plan.sequences()) + " sequences";
    if (!length(plan.devices()))
      return "has no device";
    for (const auto *ports :
         {plan.inputs(), plan.outputs(), plan.bound_inputs()})
      for (const abi::Port &port : each(ports))
        if (std::string e = portError(port); !e.empty())
          return "input or output " + quoted(port.name()) + " " + e;
    for (const abi::Collection &collection : each(plan.collections()))
      if (std::string e = collectionError(collection); !e.empty())
        return "input or output " + quoted(collection.name()) + " " + e;
    for (int64_t i = 0; i < length(plan.checks()); ++i)
      if (std::string e = checkError(*plan.checks()->Get(i)); !e.empty())
        return "check " + number(i) + " " + e;
    for (const abi::Weight &weight : each(plan.weights()))
      if (std::string e = weightError(weight); !e.empty())
        return "weight " + quoted(weight.name()) + " " + e;
    std::set<std::string_view> states;
    for (const abi::State &state : each(plan.states())) {
      std::string e = stateError(state);
      if (e.empty() && !states.insert(text(state.name())).second)
        e = "has the name of another one";
      if (!e.empty())
        return "state " + quoted(state.name()) + " " + e;
    }
    for (const abi::State &state : each(plan.states()))
      if (std::string e = ringError(state); !e.empty())
        return "state " + quoted(state.name()) + " " + e;
    for (int64_t i = 0; i < length(plan.kernels()); ++i)
      if (std::string e = kernelError(*plan.kernels()->Get(i)); !e.empty())
        return "kernel " + number(i) + " " + e;
    for (int64_t i = 0; i < length(plan.stages()); ++i)
      if (plan.stages()->Get(i)->program() != -1 &&
          !isProgram(plan.stages()->Get(i)->program()))
        return "stage " + number(i) + " names a program that does not exist";
    PARTITA_RETURN_ERROR(dimensionsError());
    PARTITA_RETURN_ERROR(mixesError());
    PARTITA_RETURN_ERROR(devicesError());
    for (int64_t i = 0; i < length(plan.channels()); ++i) {
      const abi::Channel &channel = *plan.channels()->Get(i);
      if (!isProgram(channel.source()) || !isProgram(channel.target()) ||
          channel.source() == channel.target())
        return "channel " + number(i) + " does not join two programs";
      if (!inRange(channel.bytes(), kLargestRegion))
        return "channel " + number(i) + " has an impossible size";
    }
    for (int64_t i = 0; i < length(plan.collectives()); ++i)
      if (std::string e = collectiveError(*plan.collectives()->Get(i));
          !e.empty())
        return "collective " + number(i) + " " + e;
    for (int64_t i = 0; i < length(plan.programs()); ++i)
      if (std::string e = programError(plan, static_cast<int>(i)); !e.empty())
        return "program " + number(i) + ": " + e;
    PARTITA_RETURN_ERROR(stepSequencesError());
    return storesError();
  }

private:
  bool isProgram(int64_t program) const {
    return inRange(program, length(plan.programs()));
  }

  std::string dimensionsError() const {
    for (const abi::Dimension &dimension : each(plan.dimensions())) {
      if (!length(dimension.name()) ||
          !inRange(dimension.size(), kLargestRegion))
        return "has a dimension without a name, or of an impossible size";
    }
    if (!length(plan.mask()))
      return "";
    for (const abi::Port &input : each(plan.inputs()))
      if (std::string(text(input.name())) == text(plan.mask()))
        return "";
    return "has the mask " + quoted(plan.mask()) + ", which is no input";
  }

  /// What is computed whole has no samples, and nothing that needs some.
  std::string mixesError() const {
    constexpr int64_t kMostText = 1 << 16;
    if (!length(plan.mixes()))
      return "";
    if (length(plan.mixes()) > kMostText)
      return "says in " + number(length(plan.mixes())) +
             " characters why samples cannot be split";
    if (plan.micro_batches() != 1 || length(plan.mask()))
      return "has micro-batches or a mask, and samples that cannot be split";
    for (const auto *ports : {plan.inputs(), plan.outputs()})
      for (const abi::Port &port : each(ports))
        if (port.batch_axis() >= 0)
          return "counts samples along an axis of " + quoted(port.name()) +
                 ", which cannot be split";
    return "";
  }

  /// The product of the axes; 0 if they are wrong.
  std::string meshError(int64_t &size) const {
    std::set<std::string> names;
    size = 1;
    for (int64_t i = 0; i < length(plan.axes()); ++i) {
      const abi::Axis &axis = *plan.axes()->Get(i);
      if (!length(axis.name()) || !names.insert(text(axis.name())).second)
        return "axis " + number(i) + " of the mesh has no name of its own";
      if (axis.size() < 1 || !checkedMul(size, axis.size(), size) ||
          size > length(plan.devices()))
        return "axis " + quoted(axis.name()) + " of the mesh has the size " +
               number(axis.size()) + ", for " + number(length(plan.devices())) +
               " devices";
    }
    int64_t batches;
    if (!checkedMul(plan.micro_batches(), size, batches) ||
        batches > kMostMicroBatches)
      return "has more micro-batches than can be counted";
    return "";
  }

  /// Each coordinate has one device of each program.
  std::string devicesError() const {
    int64_t size;
    PARTITA_RETURN_ERROR(meshError(size));
    std::set<std::vector<int64_t>> places; // program, coordinate
    std::vector<int64_t> devices(static_cast<size_t>(length(plan.programs())));
    for (const abi::Device *device : *plan.devices()) {
      const std::string name = "device " + quoted(device->name());
      if (!isProgram(device->program()))
        return name + " names program " + number(device->program()) + " of " +
               number(length(plan.programs()));
      if (length(device->coordinate()) != length(plan.axes()))
        return name + " has " + number(length(device->coordinate())) +
               " coordinates in a mesh of " + number(length(plan.axes())) +
               " axes";
      std::vector<int64_t> place = {device->program()};
      for (int64_t i = 0; i < length(plan.axes()); ++i) {
        place.push_back(device->coordinate()->Get(i));
        if (!inRange(place.back(), plan.axes()->Get(i)->size()))
          return name + " has the coordinate " + number(place.back()) +
                 " on axis " + quoted(plan.axes()->Get(i)->name());
      }
      if (!places.insert(place).second)
        return name + " has the program and the coordinate of another device";
      ++devices[device->program()];
    }
    for (size_t i = 0; i < devices.size(); ++i)
      if (devices[i] != size)
        return "program " + number(i) + " is executed by " +
               number(devices[i]) + " devices of a mesh of " + number(size);
    return "";
  }

  static bool isSymbol(const flatbuffers::String *name) {
    return length(name) && std::all_of(name->begin(), name->end(), [](char c) {
             return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                    (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '$';
           });
  }

  static std::string kernelError(const abi::Kernel &kernel) {
    if (!isSymbol(kernel.name()))
      return "has no usable name";
    const abi::Launch *launch = kernel.launch();
    if (!launch)
      return "";
    // What every GPU allows; a device may have less shared memory.
    constexpr int64_t kMostBlocks[] = {INT32_MAX, 65535, 65535};
    constexpr int64_t kMostThreads = 1024, kMostShared = 227 << 10;
    const int64_t dimensions = length(launch->blocks());
    if (!inRange(dimensions - 1, 3))
      return "has a grid of " + number(dimensions) + " dimensions";
    for (int64_t i = 0; i < dimensions; ++i)
      if (!inRange(launch->blocks()->Get(i) - int64_t(1), kMostBlocks[i]))
        return "has a grid of " + number(launch->blocks()->Get(i)) +
               " blocks in dimension " + number(i);
    if (!inRange(launch->threads() - int64_t(1), kMostThreads))
      return "has " + number(launch->threads()) + " threads in a block";
    if (!inRange(launch->shared_bytes(), kMostShared + 1))
      return "has " + number(launch->shared_bytes()) +
             " bytes of shared memory in a block";
    return "";
  }

  std::string portError(const abi::Port &port) const {
    int64_t count = elementBytes(port.dtype());
    if (!isAligned(port.shape()))
      return "has a shape that is not aligned";
    for (int64_t i = 0; i < length(port.shape()); ++i)
      if (port.shape()->Get(i) < 0 ||
          !checkedMul(count, std::max<int64_t>(port.shape()->Get(i), 1), count))
        return "has an impossible shape";
    if (count == 0)
      return "has an unknown element type";
    if (!inRange(port.batch_axis() + int64_t(1), length(port.shape()) + 1))
      return "has no axis " + number(port.batch_axis());
    if (port.per_step() && port.batch_axis() >= 0)
      return "counts samples, and is the same for all of a step";
    return "";
  }

  std::string stateError(const abi::State &state) const {
    if (!length(state.name()))
      return "has no name";
    if (!inRange(static_cast<int>(state.role()),
                 static_cast<int>(abi::StateRole::MAX) + 1))
      return "has an unknown role";
    PARTITA_RETURN_ERROR(
        sizeError(state.dtype(), state.shape(), state.bytes()));
    PARTITA_RETURN_ERROR(cutsError(plan, state));
    // Each micro-batch has one of its own, on each replica.
    int64_t devices = 0, bytes = 0;
    if (!checkedMul(plan.micro_batches(),
                    std::max<int64_t>(1, length(plan.devices())), devices) ||
        !checkedMul(devices, plan.sequences(), devices) ||
        !checkedMul(devices, std::max<int64_t>(1, state.bytes()), bytes) ||
        (state.role() == abi::StateRole::carried && bytes > kLargestRegion))
      return "has impossibly many micro-batches or sequences";
    if (state.weight() == -1)
      return "";
    PARTITA_RETURN_ERROR(
        indexError("begins with weight", state.weight(), plan.weights()));
    const abi::Weight &initial = *plan.weights()->Get(state.weight());
    if (initial.dtype() != state.dtype() || initial.bytes() != state.bytes())
      return "begins with a weight of another type or size";
    return "";
  }

  std::string ringError(const abi::State &state) const {
    if (state.ring_dim() == -1 && state.ring_place() == -1)
      return "";
    if (!inRange(state.ring_dim(), length(state.shape())) ||
        !inRange(state.ring_place(), length(plan.states())))
      return "is a ring without a dimension or a place";
    const abi::State &place = *plan.states()->Get(unsigned(state.ring_place()));
    // A sequence of several has a row.
    const bool isPlace = length(place.shape()) == 0 ||
                         (length(place.shape()) == 2 &&
                          place.shape()->Get(0) == plan.step_sequences() &&
                          place.shape()->Get(1) ==
                              int64_t(abi::kSlotAlignment / sizeof(int64_t)));
    if (place.dtype() != abi::DType::i64 || !isPlace || length(place.cuts()) ||
        place.role() != state.role() || place.ring_place() != -1)
      return "is a ring whose place is no number";
    return "";
  }

  /// A step may be of several sequences; each has its part of the states.
  std::string stepSequencesError() const {
    const int count = plan.step_sequences();
    if (count == 1)
      return "";
    if (count < 1 || count > abi::kMostStepSequences || !plan.full_steps() ||
        stepMicroBatches(plan) != 1 || length(plan.entry()))
      return "says that a step is of " + number(count) + " sequences";
    const abi::Port *live =
        length(plan.inputs())
            ? plan.inputs()->Get(unsigned(length(plan.inputs()) - 1))
            : nullptr;
    if (!live || live->dtype() != abi::DType::boolean ||
        length(live->shape()) != 1 || live->shape()->Get(0) != count ||
        live->batch_axis() != -1 || live->per_step())
      return "has no input that says of which sequences a step is";
    for (const abi::State &state : each(plan.states())) {
      if (state.role() != abi::StateRole::carried)
        continue;
      bool isShared = length(state.shape()) &&
                      state.shape()->Get(0) % count == 0 &&
                      partBytes(state) / count %
                              static_cast<int64_t>(abi::kSlotAlignment) ==
                          0;
      for (int64_t k = 0; k < length(state.cuts()); ++k)
        isShared &= state.cuts()->Get(unsigned(k))->dim() != 0;
      if (!isShared)
        return "state " + quoted(state.name()) + " is not of " + number(count) +
               " sequences";
    }
    // Of a wrong index one knows whose it is.
    for (int64_t i = 0; i < length(plan.checks()); ++i)
      if (plan.checks()->Get(i)->rows() % count)
        return "check " + number(i) + " is not of " + number(count) +
               " sequences";
    return "";
  }

  std::string checkError(const abi::Check &check) const {
    int64_t count = 1;
    if (!isAligned(check.shape()))
      return "has a shape that is not aligned";
    for (int64_t i = 0; i < length(check.shape()); ++i)
      if (check.shape()->Get(i) < 1 ||
          !checkedMul(count, check.shape()->Get(i), count) ||
          count > kLargestRegion)
        return "has an impossible shape";
    if (!inRange(check.rows() - 1, count) || count % check.rows() != 0)
      return "has " + number(check.rows()) + " rows of " + number(count) +
             " indices";
    const int64_t bounds = length(check.low()), rank = length(check.shape());
    if (!isAligned(check.low()) || !isAligned(check.high()) ||
        length(check.high()) != bounds ||
        (bounds != 1 &&
         (rank == 0 ||
          bounds != check.shape()->Get(static_cast<unsigned>(rank - 1)))))
      return "has bounds that do not fit its indices";
    return "";
  }

  std::string collectiveError(const abi::Collective &collective) const {
    if (!isProgram(collective.program()))
      return "names program " + number(collective.program()) + " of " +
             number(length(plan.programs()));
    if (collective.kind() > abi::CollectiveKind::MAX ||
        collective.reduction() > abi::Reduction::MAX ||
        elementBytes(collective.dtype()) == 0)
      return "is of an unknown kind";
    if (!length(collective.axes()) || !groupSize(plan, collective.axes()))
      return "is along axes that the mesh does not have";
    // Some micro-batches are absent on some replicas, if a step may lack some.
    for (int axis : *collective.axes())
      if (!plan.full_steps() &&
          std::string_view(text(plan.axes()->Get(axis)->name())) == "data")
        return "is along the axis 'data'";
    if (elementsOf(collective.rows(), collective.part(),
                   groupSize(plan, collective.axes())) < 0)
      return "has an impossible size";
    if (!inRange(collective.root(), groupSize(plan, collective.axes())))
      return "is from device " + number(collective.root()) + " of " +
             number(groupSize(plan, collective.axes()));
    const bool combines =
        collective.kind() == abi::CollectiveKind::all_reduce ||
        collective.kind() == abi::CollectiveKind::reduce_scatter;
    const bool isArithmetic = collective.dtype() <= abi::DType::boolean;
    if (combines && !isArithmetic)
      return "combines elements of a type that nothing computes with";
    return "";
  }

  std::string collectionError(const abi::Collection &collection) const {
    if (!inRange(static_cast<int64_t>(collection.kind()), 3))
      return "is of an unknown kind";
    if (!inRange(collection.length() + int64_t(1),
                 std::max(length(plan.inputs()) + length(plan.bound_inputs()),
                          length(plan.outputs())) +
                     2))
      return "has more elements than the plan has tensors";
    return "";
  }

  std::string weightError(const abi::Weight &weight) const {
    PARTITA_RETURN_ERROR(
        sizeError(weight.dtype(), weight.shape(), weight.bytes()));
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
    for (const abi::Program *program : *plan.programs())
      for (int64_t i = 0; i < length(program->actions()); ++i) {
        const abi::ProgramAction action = actionOf(*program, i);
        if (action.kind == abi::ActionKind::store_output &&
            !stored.emplace(action.subject, action.micro_batch).second)
          return "output " +
                 quoted(plan.outputs()->Get(action.subject)->name()) +
                 " of micro-batch " + number(action.micro_batch) +
                 " is stored twice";
      }
    std::map<int, int> times;
    for (auto [output, m] : stored)
      ++times[output];
    for (int64_t i = 0; i < length(plan.outputs()); ++i) {
      const abi::Port &port = *plan.outputs()->Get(i);
      if (port.per_step()) {
        if (times[static_cast<int>(i)] != 1)
          return "output " + quoted(port.name()) + " of a step is stored " +
                 number(times[static_cast<int>(i)]) + " times";
        continue;
      }
      for (int m = 0; m < plan.micro_batches(); ++m)
        if (!stored.count({static_cast<int>(i), m}))
          return "output " + quoted(plan.outputs()->Get(i)->name()) +
                 " of micro-batch " + number(m) + " is never stored";
    }
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
    error = abi::checkSchedule(scheduleModel(plan), scheduleNames(plan));
  if (error.empty())
    return Status();
  return Status::error("'" + path + "': the plan is wrong: " + error +
                       ": compile the model again");
}

} // namespace partita::runtime
