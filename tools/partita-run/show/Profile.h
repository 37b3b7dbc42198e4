//===- Profile.h - A trace for Perfetto -------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The trace is in the Trace Event Format, with complete events ("ph": "X"). It
// has a row for each device, named with its stages. "stages" is a legend of the
// stages. A unit has its micro-batch, and contains its instructions. An
// instruction has the ONNX nodes that it computes, and their modules. Sends,
// receives and waits are there too, with an arrow from each send to its
// receive. The time that a device waits for another one is a slice of its own
// ("cat": "wait"). Times are microseconds from the first event.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_SHOW_PROFILE_H
#define PARTITA_TOOLS_PARTITA_RUN_SHOW_PROFILE_H

#include "runtime/feed/Model.h"
#include "tools/partita-run/Job.h"

#include "runtime/session/Session.h"

namespace partita::run {

using namespace feed;

class Profile {
public:
  /// Adds the events of a step of this process.
  void add(const std::vector<runtime::ProfileEvent> &events, int step);

  /// Adds the time that a step took for its caller.
  void addStep(double ns) { steps.push_back(ns); }

  struct Event {
    runtime::ProfileEvent event;
    int run; ///< the step that it belongs to
  };

  /// Brings the events of all processes to process 0, with times of its clock.
  /// Empty on the other processes.
  std::vector<Event> gather(Job &job) const;
  const std::vector<double> &stepNs() const { return steps; }

private:
  std::vector<Event> events;
  std::vector<double> steps;
};

/// An error if there is no folder for such a file. An empty path is none.
runtime::Status checkFolderOf(const std::string &path);

/// The name of the library call, or of the kernel.
std::string kindOf(const Model &model, const abi::Instruction &instruction);

/// The trace as text.
std::string traceText(const Model &model, std::vector<Profile::Event> events);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_SHOW_PROFILE_H
