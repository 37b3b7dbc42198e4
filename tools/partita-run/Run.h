//===- Run.h - Running samples through a loaded plan ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_RUN_H
#define PARTITA_TOOLS_PARTITA_RUN_RUN_H

#include "runtime/feed/Feed.h"
#include "runtime/feed/Model.h"
#include "runtime/feed/PlanChoice.h"
#include "tools/partita-run/Embedded.h"
#include "tools/partita-run/Options.h"
#include "tools/partita-run/Team.h"
#include "tools/partita-run/show/Profile.h"

#include "runtime/session/Session.h"

namespace partita::run {

using namespace feed;

/// What every mode of the program works with.
struct Context {
  const Options &options;
  const Model &model;
  Team &team;
  std::unique_ptr<Embedded> embedded;        ///< a plain run of one process
  std::unique_ptr<runtime::Session> session; ///< every other
  Profile *profile = nullptr;                ///< if one is wanted
  const PlanChoice &plans;
  const PlanChoice::Choice &choice; ///< `model` is that of the chosen plan
};

/// The plan that --dim names, or that computes the tensors of --input.
runtime::Expected<PlanChoice::Choice> choosePlan(const Options &options,
                                                 const PlanChoice &plans);

/// Cores a device: as asked for, or an equal share.
int threadsOf(const Options &options, const Model &model, Team &team);

/// Says on stderr if devices have more threads than there are cores.
void remarkCores(const Options &options, const Model &model, Team &team);

/// As the options say, for this process's devices.
runtime::SessionOptions sessionOptions(const Options &options,
                                       const Model &model, Team &team);

/// Loads the plan onto the devices of this process. `measure`: the session
/// finds out how much of its arenas a step writes, which takes time.
runtime::Expected<std::unique_ptr<runtime::Session>>
loadSession(const Options &options, const Model &model, Team &team,
            bool measure = false);

/// Loads what the options ask for. A plain run goes through partita.h. What
/// that interface does not show goes through the session behind it: one device
/// of several (MPI), one plan of several, single steps that are measured or
/// recorded, and models with ports that hold no samples beside others that do
/// (partita-compile --expose).
runtime::Status load(Context &context);

/// Says on stderr what NaN that a step met did to this run. Whether outputs may
/// lack NaN; the same on all processes, which call it at the same point.
bool reportNan(Context &context);

/// Runs all samples. The result, complete on process 0, has one tensor for each
/// of Model.outputs. An error that other processes do not share ends the job.
runtime::Expected<std::vector<runtime::Tensor>>
runSamples(Context &context, const InputTensors &inputs, bool showProgress);

/// The tensors of --input, checked, and padded to the sizes of the plan; with
/// --benchmark the missing ones made up.
/// Before anything is loaded: a wrong name should not wait for a large model.
runtime::Expected<InputTensors> prepareInputs(const Options &options,
                                              const PlanChoice &plans,
                                              const PlanChoice::Choice &choice,
                                              Team &team);

/// The plain run: to --output, or to a summary on stdout.
int runOnce(Context &context, const InputTensors &inputs);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_RUN_H
