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

#include "runtime/abi/Steps.h"
#include "runtime/base/Elements.h"

namespace partita::runtime {

/// The program that device `device` of the plan executes.
inline const abi::Program &programOf(const abi::Plan &plan, int device) {
  const int program =
      plan.devices()->Get(static_cast<unsigned>(device))->program();
  return *plan.programs()->Get(static_cast<unsigned>(program));
}

/// Step `index` of a program.
inline abi::ProgramStep stepOf(const abi::Program &program, int64_t index) {
  const abi::Step &step = *program.steps()->Get(static_cast<unsigned>(index));
  return {static_cast<abi::StepKind>(step.kind()), step.micro_batch(),
          step.subject(), step.slot()};
}

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_BASE_PROGRAMS_H
