//===- ModelTimes.cpp - What a model's work takes on this machine ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/measure/ModelTimes.h"

#include "tools/partita-run/measure/Benchmark.h"
#include "tools/partita-run/show/Format.h"
#include "tools/partita-run/show/ProfileTable.h"

#include "runtime/abi/DeviceKinds.h"
#include "runtime/abi/Text.h"
#include "runtime/base/MappedFile.h"
#include "runtime/base/Programs.h"
#include "runtime/io/PendingFile.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <sstream>

namespace partita::run {

using runtime::Expected;
using runtime::MachineSpeeds;
using runtime::Status;
using runtime::TeamSpeeds;
using runtime::WorkTime;

namespace {

/// As the compiler reads of such a file. One with the work of a hundred models
/// has a few hundred KiB.
constexpr size_t kMostMachineBytes = 16 << 20;

TeamSpeeds *findTeam(MachineSpeeds &machine, int threads) {
  for (TeamSpeeds &team : machine.teams)
    if (team.threads == threads)
      return &team;
  return nullptr;
}

/// The steps of the middle half, by their time.
std::vector<bool> chooseSteps(const std::vector<double> &stepNs) {
  std::vector<size_t> order(stepNs.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return stepNs[a] < stepNs[b]; });
  std::vector<bool> chosen(stepNs.size());
  const size_t quarter = stepNs.size() / 4;
  for (size_t i = quarter; i < stepNs.size() - quarter; ++i)
    chosen[order[i]] = true;
  return chosen;
}

} // namespace

Expected<MachineSpeeds> readMachine(const Options &options, const Model &model,
                                    Job &job) {
  auto fail = [&](const std::string &what) {
    return Status::error("'" + options.calibrate + "' " + what);
  };
  for (const abi::Device *device : *model.plan->devices())
    if (abi::launchesGrids(device->kind()))
      return Status::error(
          "the work of '" + model.file + "' is not measured: times on " +
          runtime::text(device->name()) +
          " are predicted by the figures of the device; --calibrate without "
          "an artifact measures these");
  auto file = runtime::MappedFile::open(options.calibrate);
  if (!file)
    return Status::error(file.status().message() +
                         ": first write it with partita-run --calibrate " +
                         options.calibrate + ", without an artifact");
  if ((*file)->size() > kMostMachineBytes)
    return fail("has " + std::to_string((*file)->size()) +
                " bytes: no description of a machine has more than " +
                std::to_string(kMostMachineBytes));
  Expected<MachineSpeeds> machine = MachineSpeeds::parse((*file)->text());
  if (!machine)
    return fail(machine.status().message() +
                "; write one with partita-run --calibrate FILE");
  const std::string again = "; compile it again with --machine " +
                            options.calibrate + ", then measure it";
  if (runtime::text(model.plan->machine_id()) != machine->id)
    return Status::error("'" + model.file +
                         "' was compiled without the measurements of '" +
                         options.calibrate + "'" + again);
  const int threads = threadsOf(options, job);
  if (model.plan->threads() != threads)
    return Status::error(
        "the times of '" + model.file + "' are those of " +
        abi::countOf(model.plan->threads(), "core") +
        " a device, and this run has " + abi::countOf(threads, "core") +
        " a device; give --threads " + std::to_string(model.plan->threads()));
  if (!findTeam(*machine, threads))
    return fail("says nothing of teams of " + abi::countOf(threads, "thread") +
                ": use as many cores a device as it has a team for");
  return machine;
}

/// The times of the work of a step, by key. Only steps whose own time is in the
/// middle half count. So the times add up to about the median of a step.
static std::map<uint64_t, WorkTime>
collectWork(const Model &model, const std::vector<Profile::Event> &events,
            const std::vector<double> &stepNs) {
  const std::vector<bool> chosen = chooseSteps(stepNs);
  const auto count = double(std::count(chosen.begin(), chosen.end(), true));
  std::map<uint64_t, WorkTime> times;
  for (const Profile::Event &item : events) {
    const runtime::ProfileEvent &event = item.event;
    if (event.instruction < 0 || item.run < 0 ||
        item.run >= int(chosen.size()) || !chosen[size_t(item.run)])
      continue;
    const abi::Program &program = runtime::programOf(*model.plan, event.device);
    const int unit = runtime::actionOf(program, event.action).subject;
    const abi::Instruction &work = runtime::at(
        runtime::at(program.units(), unit).instructions(), event.instruction);
    if (work.work_key() == 0 || work.modelled_ns() <= 0)
      continue;
    WorkTime &time = times[work.work_key()];
    time.ns += double(event.end_ns - event.begin_ns) / count;
    time.modelledNs += double(work.modelled_ns()) / count;
  }
  // What took no time that a clock can tell has no ratio.
  std::erase_if(times, [](const auto &item) { return item.second.ns <= 0; });
  return times;
}

Status addTimes(const Options &options, const Model &model, Job &job,
                const std::vector<Profile::Event> &events,
                const std::vector<double> &stepNs) {
  const std::map<uint64_t, WorkTime> times = collectWork(model, events, stepNs);
  WorkTime all;
  for (const auto &[key, time] : times) {
    all.ns += time.ns;
    all.modelledNs += time.modelledNs;
  }
  MachineSpeeds machine = PARTITA_TRY(readMachine(options, model, job));
  auto &known = findTeam(machine, model.plan->threads())->work[model.devices];
  for (const auto &[key, time] : times)
    known[key] = time;
  PARTITA_TRY(runtime::writeFile(options.calibrate, machine.json()));
  std::vector<double> sorted = stepNs;
  std::sort(sorted.begin(), sorted.end());
  const double median = percentile(sorted, 0.5);
  if (options.json)
    std::printf("%s\n", dump({{"artifact", model.file},
                              {"machine", options.calibrate},
                              {"steps", stepNs.size()},
                              {"median_ms", median / 1e6},
                              {"kinds_of_work", times.size()},
                              {"work_ms", all.ns / 1e6},
                              {"work_by_rates_ms", all.modelledNs / 1e6}})
                            .c_str());
  else
    std::printf("%s: %zu steps, median %s\n"
                "%zu kinds of work, %s a step on all devices together; by the "
                "rates of the machine %s\n"
                "added to %s: compile the model again with --machine %s\n",
                model.file.c_str(), stepNs.size(), timeText(median).c_str(),
                times.size(), timeText(all.ns).c_str(),
                timeText(all.modelledNs).c_str(), options.calibrate.c_str(),
                options.calibrate.c_str());
  return Status();
}

int runModelCalibration(Context &context, const InputTensors &inputs) {
  Expected<Feed> feed =
      Feed::create(context.model, inputs, context.job.devices());
  if (!context.job.allWell(feed.status()))
    return 1;
  const WholeStep step(context, *feed);
  measureSteps(context, step.binding);
  std::vector<Profile::Event> events = context.profile->gather(context.job);
  Status status;
  if (context.job.root())
    status = addTimes(context.options, context.model, context.job, events,
                      context.profile->stepNs());
  return context.job.allWell(status) ? 0 : 1;
}

} // namespace partita::run
