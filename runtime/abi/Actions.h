//===- Actions.h - The actions of a program ---------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kinds of actions. They are listed once, in Actions.def. Schedules, the
// plan dialect, the artifact, its verifier and the schedule proof use this
// list. It is plain C++ without dependencies.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_ABI_ACTIONS_H
#define PARTITA_RUNTIME_ABI_ACTIONS_H

#include <cstdint>

namespace partita::abi {

enum class ActionKind : uint8_t {
#define PARTITA_ACTION(name, op, subject, access) name,
#include "runtime/abi/Actions.def"
#undef PARTITA_ACTION
};

/// The list that the subject of an action is an index of.
enum class ActionSubject : uint8_t {
  unit,             ///< Program.units
  sent_channel,     ///< Plan.channels, on the side of its source
  received_channel, ///< Plan.channels, on the side of its target
  input,            ///< Plan.inputs
  output,           ///< Plan.outputs
  collective,       ///< Plan.collectives
  check             ///< Plan.checks
};

/// How an action itself uses its slot.
enum class SlotAccess : uint8_t { none, read, written };

struct ActionInfo {
  const char *name; ///< e.g. "load_input"
  ActionSubject subject;
  SlotAccess access;
};

inline constexpr ActionInfo kActions[] = {
#define PARTITA_ACTION(name, op, subject, access)                              \
  {#name, ActionSubject::subject, SlotAccess::access},
#include "runtime/abi/Actions.def"
#undef PARTITA_ACTION
};
inline constexpr int kActionKinds = sizeof(kActions) / sizeof(kActions[0]);

constexpr const ActionInfo &getInfo(ActionKind kind) {
  return kActions[static_cast<int>(kind)];
}

/// Whether the action is one side of a transfer.
constexpr bool usesChannel(ActionKind kind) {
  ActionSubject subject = getInfo(kind).subject;
  return subject == ActionSubject::sent_channel ||
         subject == ActionSubject::received_channel;
}

/// An action of a device's program, on one micro-batch: `Action` of plan.fbs.
struct ProgramAction {
  ActionKind kind = ActionKind::run;
  int micro_batch = 0;
  int subject = -1; ///< see ActionSubject
  int slot = -1;    ///< Program.slots; -1: none, or a token (see Channel)

  bool operator==(const ProgramAction &) const = default;
};

} // namespace partita::abi

#endif // PARTITA_RUNTIME_ABI_ACTIONS_H
