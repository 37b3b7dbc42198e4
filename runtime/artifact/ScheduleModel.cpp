//===- ScheduleModel.cpp - A plan as the schedule check sees it -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/artifact/PlanVerifier.h"
#include "runtime/base/Programs.h"
#include "runtime/base/Slots.h"

namespace partita::runtime {
namespace {

/// The part of a slot that an instruction uses.
abi::CheckedUse modelOf(const abi::Program &program, const SlotUse &used) {
  if (!used.view)
    return {used.slot, 0, program.slots()->Get(used.slot)->bytes()};
  // The bytes from a view's first to its last element.
  const abi::View &view = *used.view;
  int64_t bytes = elementBytes(program.slots()->Get(view.slot())->dtype());
  int64_t last = view.offset();
  for (int64_t i = 0; i < length(view.shape()); ++i)
    last += (view.shape()->Get(i) - 1) * view.strides()->Get(i);
  return {used.slot, view.offset() * bytes, (last + 1) * bytes};
}

abi::CheckedInstruction modelOf(const abi::Program &program,
                                const abi::Instruction &instruction,
                                const char *unit) {
  abi::CheckedInstruction result;
  result.name = unit;
  if (length(instruction.label()))
    result.name += std::string(": ") + text(instruction.label());
  forEachSlot(instruction, [&](const SlotUse &used) {
    (used.written ? result.writes : result.reads)
        .push_back(modelOf(program, used));
  });
  return result;
}

abi::CheckedProgram modelOf(const abi::Plan &plan,
                            const abi::Program &program) {
  abi::CheckedProgram checked;
  checked.micro_batches = plan.micro_batches();
  checked.arena_bytes = program.arena_bytes();
  checked.constant_bytes = program.constant_bytes();
  for (const abi::Frame &frame : each(program.frames())) {
    checked.frames.push_back(
        {frame.bytes(), {frame.copies()->begin(), frame.copies()->end()}});
  }
  for (const abi::Slot &slot : each(program.slots())) {
    const bool isCarried =
        slot.space() == abi::Space::state &&
        at(plan.states(), slot.offset()).role() == abi::StateRole::carried;
    checked.slots.push_back({slot.space(),
                             slot.frame(),
                             slot.offset(),
                             slot.bytes(),
                             slot.span(),
                             slot.sum(),
                             slot.lane(),
                             {},
                             slot.renewed(),
                             isCarried});
    if (slot.members())
      checked.slots.back().members.assign(slot.members()->begin(),
                                          slot.members()->end());
  }
  for (const abi::Instruction &instruction : each(program.load()))
    checked.load.push_back(modelOf(program, instruction, "load"));
  for (const abi::Unit &unit : each(program.units())) {
    abi::CheckedUnit &made = checked.units.emplace_back();
    for (const abi::Instruction &instruction : each(unit.instructions()))
      made.push_back(modelOf(program, instruction, text(unit.name())));
  }
  for (int64_t i = 0; i < length(program.actions()); ++i)
    checked.actions.push_back(actionOf(program, i));
  return checked;
}

template <typename Table>
std::vector<std::string>
namesOf(const flatbuffers::Vector<flatbuffers::Offset<Table>> *tables) {
  std::vector<std::string> names;
  for (const auto &table : each(tables))
    names.push_back(text(table.name()));
  return names;
}

} // namespace

std::vector<abi::CheckedProgram> scheduleModel(const abi::Plan &plan) {
  std::vector<abi::CheckedProgram> programs;
  for (const abi::Program &program : each(plan.programs()))
    programs.push_back(modelOf(plan, program));
  // One device stands for all of its program: they do the same.
  for (const abi::Device *device : *plan.devices())
    if (std::string &name =
            programs[static_cast<size_t>(device->program())].device;
        name.empty())
      name = text(device->name());
  return programs;
}

abi::CheckedNames scheduleNames(const abi::Plan &plan) {
  std::vector<std::string> checks;
  for (const abi::Check &check : each(plan.checks()))
    checks.push_back(text(check.node()));
  return {namesOf(plan.channels()), namesOf(plan.inputs()),
          namesOf(plan.outputs()), namesOf(plan.collectives()),
          std::move(checks)};
}

} // namespace partita::runtime
