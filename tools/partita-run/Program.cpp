//===- Program.cpp - partita-run from its command line on -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/Program.h"

#include "tools/cli/CommandLine.h"
#include "tools/partita-run/Run.h"
#include "tools/partita-run/measure/Benchmark.h"
#include "tools/partita-run/measure/ModelTimes.h"
#include "tools/partita-run/show/PlanTable.h"
#include "tools/partita-run/show/ProfileTable.h"

#include "runtime/abi/DeviceKinds.h"
#include "runtime/io/PendingFile.h"
#include "runtime/io/TensorFiles.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <pthread.h>
#include <unistd.h>

namespace partita::run {

using runtime::Expected;
using runtime::Status;

namespace {

/// --devices says again what the plan says; anything else is a mistake.
Status checkDevices(const Options &options, const Model &model) {
  if (options.devices.empty())
    return Status();
  std::map<std::string, int> counts;
  std::vector<std::pair<std::string, int>> runs; // in the plan's order
  for (const abi::Device *device : *model.plan->devices()) {
    const std::string kind = abi::getName(device->kind());
    ++counts[kind];
    if (runs.empty() || runs.back().first != kind)
      runs.emplace_back(kind, 0);
    ++runs.back().second;
  }
  std::string compiled;
  for (const auto &[kind, count] : runs)
    compiled +=
        (compiled.empty() ? "" : ",") + kind + ":" + std::to_string(count);
  cli::Devices devices;
  if (std::string error = cli::parseDevices(options.devices, devices);
      !error.empty()) {
    const std::string kind =
        options.devices.substr(0, options.devices.find(':'));
    std::string text = "--devices: " + error + "; '" + model.file +
                       "' was compiled for " + compiled;
    if (abi::findDeviceKind(kind) && !counts.contains(kind))
      text += "; for " + kind + ", compile the model again with --devices " +
              kind + ":1";
    return Status::error(text);
  }
  // Of a plan with several kinds, one may be named alone.
  bool agrees =
      !devices.groups.front().kind.empty() || devices.count() == model.devices;
  for (const cli::DeviceGroup &group : devices.groups)
    if (!group.kind.empty())
      agrees &= counts[group.kind] == devices.count(group.kind);
  if (agrees)
    return Status();
  return Status::error("--devices " + options.devices + ": '" + model.file +
                       "' was compiled for " + compiled +
                       "; compile the model again with --devices " +
                       options.devices + ", or leave the option out");
}

/// What can be known to fail before anything is loaded.
Status checkRequest(const Options &options, const Model &model, Job &job) {
  PARTITA_TRY(checkDevices(options, model));
  if (!options.calibrate.empty())
    PARTITA_TRY(readMachine(options, model, job));
  if (!options.output.empty())
    PARTITA_TRY(runtime::checkOutputPath(options.output));
  return checkFolderOf(options.profile);
}

int runMode(const Options &options, const PlanChoice &plans,
            const PlanChoice::Choice &choice, Job &job) {
  const Model &model = plans.model(choice.plan);
  Expected<InputTensors> inputs = InputTensors();
  Status status;
  if (options.testData.empty()) {
    inputs = prepareInputs(options, plans, choice, job);
    status = inputs.status();
  } else {
    status = checkTestData(options, model);
  }
  if (!job.allWell(status))
    return 1;
  remarkCores(options, job);
  if (options.rate > 0)
    return runOfferedLoad(options, model, job, *inputs);
  Profile profile;
  Context context{options, model,   job,
                  nullptr, nullptr, options.wantsProfile() ? &profile : nullptr,
                  plans,   choice};
  if (!job.allWell(load(context)))
    return 1;
  int result = options.benchmark ? runBenchmark(context, *inputs)
               : !options.calibrate.empty()
                   ? runModelCalibration(context, *inputs)
               : options.testData.empty() ? runOnce(context, *inputs)
                                          : runTestData(context);
  if (result != 0 || !context.profile)
    return result;
  std::vector<Profile::Event> events = profile.gather(job);
  if (options.profileTable && !options.benchmark && options.calibrate.empty() &&
      job.root())
    std::fputs(ProfileTable(model, events, profile.stepNs())
                   .text(model, options.top)
                   .c_str(),
               stdout);
  Status written;
  if (!options.profile.empty() && job.root())
    written = runtime::writeFile(options.profile,
                                 traceText(model, std::move(events)));
  return job.allWell(written) ? 0 : 1;
}

int runArtifact(const Options &options) {
  Expected<std::unique_ptr<Job>> job = Job::start(options);
  if (!job)
    return printError(job.status());
  auto artifacts = runtime::Artifact::openAll(options.artifact);
  if (!(*job)->allWell(artifacts.status()))
    return 1;
  const PlanChoice plans(std::move(*artifacts));
  Expected<PlanChoice::Choice> choice = choosePlan(options, plans);
  if (!(*job)->allWell(choice.status()))
    return 1;
  const Model &model = plans.model(choice->plan);
  if (!options.plan &&
      !(*job)->allWell((*job)->check(model, choice->plan, options.deviceMap)))
    return 1;
  if (!(*job)->allWell(checkRequest(options, model, **job)))
    return 1;
  if (options.plan) {
    // Of a model that is trained, the plan that learns comes first.
    std::optional<Model> learns;
    if (auto training = runtime::Artifact::openTraining(options.artifact))
      learns.emplace(training->train);
    if (learns && (*job)->root() && !options.json)
      std::printf("to learn (--train)\n%s\nto evaluate\n",
                  planText(*learns).c_str());
    const std::vector<const Model *> several = plans.ofSeveral(choice->plan);
    if ((*job)->root())
      std::fputs((options.json
                      ? planJson(model, learns ? &*learns : nullptr, several)
                      : planText(model))
                     .c_str(),
                 stdout);
    for (const Model *each : several)
      if ((*job)->root() && !options.json)
        std::printf("\nfor steps of %d sequences\n%s",
                    each->plan->step_sequences(), planText(*each).c_str());
    if ((*job)->root() && !options.json && plans.planCount() > 1)
      std::printf("\nThere are plans for %s; --dim shows another.\n",
                  plans.text().c_str());
    return 0;
  }
  return runMode(options, plans, *choice, **job);
}

/// Signals come here while the main thread runs a step, in which it takes none
/// (see SignalMask.h). Without it they come at the end of the step. One serves
/// all runs of a process.
void startSignalThread() {
  static std::atomic_flag started;
  if (started.test_and_set())
    return;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t(1) << 17);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  (void)pthread_create(
      &thread, &attributes,
      [](void *) -> void * {
        for (;;)
          pause();
      },
      nullptr);
  pthread_attr_destroy(&attributes);
}

} // namespace

/// Less than a millisecond: longer than the gap between two ops of a step,
/// shorter than a time slice. MobileNetV2 on two idle cores is as fast as with
/// any larger count; with a third of it, some runs take half as long again.
static constexpr char kSpinCount[] = "30000";

void boundSpinning(char **argv) {
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY"))
    return;
  // The program's own path, and not the link, whose name it would have then.
  std::error_code error;
  const std::string program =
      std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error || setenv("GOMP_SPINCOUNT", kSpinCount, 1) != 0)
    return;
  // Where this fails the program goes on as it is.
  (void)execv(program.c_str(), argv);
}

int runProgram(int argc, char **argv) {
  startSignalThread();
  Options options;
  int status = parseOptions(argc, argv, options);
  if (status >= 0)
    return status;
  if (options.training.isOn)
    return runTraining(options);
  return options.artifact.empty() ? runCalibration(options)
                                  : runArtifact(options);
}

} // namespace partita::run
