//===- Waiting.h - Waiting and moving, told apart ---------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A receive takes as long as its sender needs to come there, and then as long
// as its bytes take. The first says nothing of the link. So each entry of a
// profile is cut where the last of those for whom it waited was there:
//
//   cpu:0   |------ F0 ------|send|
//   cpu:1   |recv  waiting .......|moving|--- F1 ---
//
// Clocks of processes on different hosts agree to some microseconds only, and
// so does the cut.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_SHOW_WAITING_H
#define PARTITA_TOOLS_PARTITA_RUN_SHOW_WAITING_H

#include "tools/partita-run/show/Profile.h"

#include "runtime/abi/Steps.h"

#include <optional>
#include <tuple>

namespace partita::run {

/// The entry of its program that an event is of; none if there is no such.
std::optional<abi::ProgramStep> entryOf(const Model &model,
                                        const runtime::ProfileEvent &event);

/// By what a send and its receive find each other: the step, the link, the
/// micro-batch.
using MessageKey = std::tuple<int, int, int>;
/// Of a send or receive; none of anything else.
std::optional<MessageKey> messageKeyOf(const Model &model,
                                       const Profile::Event &item);

/// For each event, for how many nanoseconds from its begin on it did nothing
/// but wait for another device: until the message was sent, until the last
/// device had come to a collective, or until a message was taken.
std::vector<int64_t> findWaits(const Model &model,
                               const std::vector<Profile::Event> &events);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_SHOW_WAITING_H
