//===- Programs.h - Who executes which program ------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of plans that have been verified: every index is in range, and each program
// is executed by exactly one device.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_BASE_PROGRAMS_H
#define PARTITA_RUNTIME_BASE_PROGRAMS_H

#include "runtime/abi/Steps.h"
#include "runtime/base/Elements.h"

namespace partita::runtime {

/// What device `device` of the plan executes.
inline const abi::Program &programOf(const abi::Plan &plan, int device) {
  const int program =
      plan.devices()->Get(static_cast<unsigned>(device))->program();
  return *plan.programs()->Get(static_cast<unsigned>(program));
}

/// The device, by its index in the plan, that executes a program; -1: none.
inline int deviceOf(const abi::Plan &plan, int program) {
  for (int64_t i = 0; i < length(plan.devices()); ++i)
    if (plan.devices()->Get(static_cast<unsigned>(i))->program() == program)
      return static_cast<int>(i);
  return -1;
}

/// Step `index` of a program.
inline abi::ProgramStep stepOf(const abi::Program &program, int64_t index) {
  const abi::Step &step = *program.steps()->Get(static_cast<unsigned>(index));
  return {static_cast<abi::StepKind>(step.kind()), step.micro_batch(),
          step.subject(), step.slot()};
}

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_BASE_PROGRAMS_H
