//===- Steps.h - The steps of a program -------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kinds of steps. They are listed once, in Steps.def. Schedules, the plan
// dialect, the artifact, its verifier and the schedule proof use this list. It
// is plain C++ without dependencies.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_ABI_STEPS_H
#define PARTITA_RUNTIME_ABI_STEPS_H

#include <cstdint>

namespace partita::abi {

enum class StepKind : uint8_t {
#define PARTITA_STEP(name, op, subject, access) name,
#include "runtime/abi/Steps.def"
#undef PARTITA_STEP
};

/// The list that the subject of a step is an index of.
enum class StepSubject : uint8_t {
  unit,             ///< Program.units
  sent_channel,     ///< Plan.channels, on the side of its source
  received_channel, ///< Plan.channels, on the side of its target
  input,            ///< Plan.inputs
  output,           ///< Plan.outputs
  collective,       ///< Plan.collectives
  check             ///< Plan.checks
};

/// How a step itself uses its slot.
enum class SlotAccess : uint8_t { none, read, written };

struct StepInfo {
  const char *name; ///< e.g. "load_input"
  StepSubject subject;
  SlotAccess access;
};

inline constexpr StepInfo kSteps[] = {
#define PARTITA_STEP(name, op, subject, access)                                \
  {#name, StepSubject::subject, SlotAccess::access},
#include "runtime/abi/Steps.def"
#undef PARTITA_STEP
};
inline constexpr int kStepKinds = sizeof(kSteps) / sizeof(kSteps[0]);

constexpr const StepInfo &getInfo(StepKind kind) {
  return kSteps[static_cast<int>(kind)];
}

/// Whether the step is one side of a transfer.
constexpr bool usesChannel(StepKind kind) {
  StepSubject subject = getInfo(kind).subject;
  return subject == StepSubject::sent_channel ||
         subject == StepSubject::received_channel;
}

/// A step of a device's program, on one micro-batch: `Step` of plan.fbs.
struct ProgramStep {
  StepKind kind = StepKind::run;
  int micro_batch = 0;
  int subject = -1; ///< see StepSubject
  int slot = -1;    ///< Program.slots; -1: none, or a token (see Channel)

  bool operator==(const ProgramStep &) const = default;
};

} // namespace partita::abi

#endif // PARTITA_RUNTIME_ABI_STEPS_H
