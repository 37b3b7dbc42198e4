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
#include "tools/partita-run/Job.h"
#include "tools/partita-run/Options.h"
#include "tools/partita-run/show/Profile.h"

#include "runtime/session/Session.h"

namespace partita::run {

using namespace feed;

/// The objects that every mode of the program works with.
struct Context {
  const Options &options;
  const Model &model;
  Job &job;
  std::unique_ptr<Embedded> embedded;        ///< of a plain run in one process
  std::unique_ptr<runtime::Session> session; ///< of every other run
  Profile *profile = nullptr;                ///< null: none is recorded
  const PlanChoice &plans;
  const PlanChoice::Choice &choice; ///< `model` is that of the chosen plan
  bool metNan = false;              ///< a step of the last run (reportNan)
};

/// The plan that --dim names, or that suits the tensors of --input.
runtime::Expected<PlanChoice::Choice> choosePlan(const Options &options,
                                                 const PlanChoice &plans);

/// Prints each line of a text as a remark on stderr.
void remark(const std::string &text);

/// Prints an error on stderr. Returns the exit status.
int printError(const runtime::Status &status);

/// The cores per device: as asked for, or an equal share.
int threadsOf(const Options &options, const Job &job);

/// Whether devices of this process have cores of their own.
bool haveRoom(const Options &options, const Job &job);

/// Prints a remark on stderr if devices have more threads than there are cores.
void remarkCores(const Options &options, const Job &job);

/// The session options that the command line asks for, for this process's
/// devices.
runtime::SessionOptions sessionOptions(const Options &options,
                                       const Model &model, const Job &job);

/// Loads the plan onto the devices of this process. `measure`: the session
/// measures how much of its arenas a step writes, which takes time.
runtime::Expected<std::unique_ptr<runtime::Session>>
loadSession(const Options &options, const Model &model, Job &job,
            bool measure = false);

/// Loads the plan for a look at where NaN begins. `keepNan`: with code that
/// keeps NaN.
runtime::Expected<std::unique_ptr<runtime::Session>>
loadSearch(const Options &options, const Model &model, Job &job, bool keepNan);

/// Loads what the options ask for. A plain run goes through partita.h. Other
/// runs need more than that interface offers, and use a session directly: some
/// of the devices (MPI), one plan of several, single steps that are measured
/// or recorded, and models in which only some ports hold samples
/// (partita-compile --expose).
runtime::Status load(Context &context);

/// Whether steps keep NaN now (Session::keepsNan).
bool keepsNan(const Context &context);

/// Prints a remark on stderr if a step met NaN where fast code makes numbers of
/// it, and notes that in the context. Returns whether outputs may
/// lack NaN. The result is the same on all processes, which must call this at
/// the same point.
bool reportNan(Context &context);

/// Runs all samples. The result has one tensor for each of Model.outputs and is
/// complete on process 0. An error that other processes do not share ends the
/// job.
runtime::Expected<std::vector<runtime::Tensor>>
runSamples(Context &context, const InputTensors &inputs, bool showProgress);

/// Reads and checks the tensors of --input and pads them to the sizes of the
/// plan. With --benchmark, missing tensors are made up. This is done before
/// anything is loaded, so that a wrong name does not wait for a large model.
runtime::Expected<InputTensors> prepareInputs(const Options &options,
                                              const PlanChoice &plans,
                                              const PlanChoice::Choice &choice,
                                              Job &job);

/// The plain run. Writes the outputs to --output, or a summary to stdout.
/// Returns the exit status.
int runOnce(Context &context, const InputTensors &inputs);

/// Compares outputs with the tensors of the same name in --compare: first inner
/// values in the order of the model, then the model's own outputs. Prints the
/// first tensor that differs, with its node; with --json all tensors. A
/// reference may have another order of dimensions than the model (images
/// channels-last), or another shape. It is then compared in the order that
/// agrees best. Returns false if a tensor differs. Fails if the file cannot be
/// read or names none of the outputs.
runtime::Expected<bool>
compareWithReference(const Options &options, const Model &model,
                     const std::vector<runtime::Tensor> &outputs);

/// Prints a remark on stderr if outputs have NaN, or if a step has met some
/// (Context.metNan): which output and sample, and the input, the parameter or
/// the op that it comes from. `outputs` are complete on process 0. All
/// processes must call this at the same point.
void remarkNan(Context &context, const InputTensors &inputs,
               const std::vector<runtime::Tensor> &outputs);

// The other modes of the program. They return the exit status.

/// Runs --test-data. The test vectors are in the folder itself, or else in each
/// of its folders that has any. input_K.pb is for the model's input number K.
/// The files of inputs that were fixed at compile time are left out. Prints a
/// line for each output, then PASS or FAIL. The exit status is 1 if something
/// differs.
int runTestData(Context &context);

/// Fails unless all input vectors are there and fit. Called before anything is
/// loaded.
runtime::Status checkTestData(const Options &options, const Model &model);

/// Runs --benchmark --rate. Samples come one by one at random times, as from
/// many independent users, and go through a feed::Stream. A sample's latency
/// counts from the time at which it should have come. So the latencies show
/// whether a stream cannot keep up. Prints latencies and the served load; with
/// --json one object. All devices must be in this process.
int runOfferedLoad(const Options &options, const Model &model, Job &job,
                   const InputTensors &inputs);

/// Measures this machine and writes the file for `partita-compile --machine`.
/// Prints a short summary of it; with --json the text of the file.
int runCalibration(const Options &options);

/// Trains the artifact as the options say.
int runTraining(const Options &options);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_RUN_H
