//===- Programs.h - Who executes which program ------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The plans must have been verified: every index is in range.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_BASE_PROGRAMS_H
#define PARTITA_RUNTIME_BASE_PROGRAMS_H

#include "runtime/abi/Actions.h"
#include "runtime/base/Elements.h"

namespace partita::runtime {

/// The program that device `device` of the plan executes.
inline const abi::Program &programOf(const abi::Plan &plan, int device) {
  return at(plan.programs(), at(plan.devices(), device).program());
}

/// Action `index` of a program.
inline abi::ProgramAction actionOf(const abi::Program &program, int64_t index) {
  const abi::Action &action = at(program.actions(), index);
  return {static_cast<abi::ActionKind>(action.kind()), action.micro_batch(),
          action.subject(), action.slot()};
}

/// Visits the instructions of a program's units, and before them those of its
/// load if `with_load`.
template <typename Visit>
void forEachInstruction(const abi::Program &program, bool with_load,
                        const Visit &visit) {
  if (with_load)
    for (const abi::Instruction &instruction : each(program.load()))
      visit(instruction);
  for (const abi::Unit &unit : each(program.units()))
    for (const abi::Instruction &instruction : each(unit.instructions()))
      visit(instruction);
}

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_BASE_PROGRAMS_H
