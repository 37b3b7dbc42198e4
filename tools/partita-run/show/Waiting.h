//===- Waiting.h - Splitting waits from transfers ---------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The time of a receive has two parts. First it waits until its sender gets to
// the send. Then it takes as long as its bytes need. Only the second part tells
// about the link. So each entry of a profile is split at the time when the last
// device that it waited for was there:
//
//   cpu:0   |------ F0 ------|send|
//   cpu:1   |recv  waiting .......|moving|--- F1 ---
//
// Clocks of processes on different hosts agree only within some microseconds.
// So the split is no more exact than that.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_SHOW_WAITING_H
#define PARTITA_TOOLS_PARTITA_RUN_SHOW_WAITING_H

#include "tools/partita-run/show/Profile.h"

#include "runtime/abi/Actions.h"

#include <optional>
#include <tuple>

namespace partita::run {

/// The entry of the program that an event belongs to.
abi::ProgramAction entryOf(const Model &model,
                           const runtime::ProfileEvent &event);

/// The key that a send and its receive share: the step, the link and the
/// micro-batch.
using MessageKey = std::tuple<int, int, int>;
/// The key of a send or receive. Nothing for any other event.
std::optional<MessageKey> messageKeyOf(const Model &model,
                                       const Profile::Event &item);

/// For each event, how many nanoseconds from its begin it only waited for
/// another device: until the message was sent, until the last device had come
/// to a collective, or until a message was taken.
std::vector<int64_t> findWaits(const Model &model,
                               const std::vector<Profile::Event> &events);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_SHOW_WAITING_H
