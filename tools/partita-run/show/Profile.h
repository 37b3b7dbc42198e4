//===- Profile.h - A trace for Perfetto -------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Trace Event Format, complete events ("ph": "X"): a row a device, named with
// its stages, of which "stages" is a legend; a unit with its micro-batch, in it
// its instructions with the ONNX nodes they compute and the modules of those;
// sends, receives and waits, with an arrow from each send to its receive. What
// a device waits for another is a slice of its own ("cat": "wait"). Times are
// microseconds from the first event.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_SHOW_PROFILE_H
#define PARTITA_TOOLS_PARTITA_RUN_SHOW_PROFILE_H

#include "runtime/feed/Model.h"
#include "tools/partita-run/Team.h"

#include "runtime/session/Session.h"

namespace partita::run {

using namespace feed;

class Profile {
public:
  /// Adds the events of a step of this process.
  void add(const std::vector<runtime::ProfileEvent> &events, int step);

  /// Notes how long that step took for its caller.
  void addStep(double ns) { steps.push_back(ns); }

  struct Event {
    runtime::ProfileEvent event;
    int run; ///< which step of the samples it belongs to
  };

  /// Brings all processes' events to process 0, on its clock; empty elsewhere.
  std::vector<Event> gather(Team &team) const;
  const std::vector<double> &stepNs() const { return steps; }

private:
  std::vector<Event> events;
  std::vector<double> steps;
};

/// Writes the trace beside `path`, then renames it.
runtime::Status writeTrace(const std::string &path, const Model &model,
                           std::vector<Profile::Event> events);

/// The library call's name, or the kernel's.
std::string kindOf(const Model &model, const abi::Instruction &instruction);

/// The trace as text.
std::string traceText(const Model &model, std::vector<Profile::Event> events);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_SHOW_PROFILE_H
