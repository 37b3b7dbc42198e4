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
  const int program =
      plan.devices()->Get(static_cast<unsigned>(device))->program();
  return *plan.programs()->Get(static_cast<unsigned>(program));
}

/// Action `index` of a program.
inline abi::ProgramAction actionOf(const abi::Program &program, int64_t index) {
  const abi::Action &action =
      *program.actions()->Get(static_cast<unsigned>(index));
  return {static_cast<abi::ActionKind>(action.kind()), action.micro_batch(),
          action.subject(), action.slot()};
}

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_BASE_PROGRAMS_H
