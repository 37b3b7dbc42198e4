//===- Benchmark.cpp - Measuring steps ------------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/measure/Benchmark.h"

#include "tools/partita-run/measure/Sample.h"
#include "tools/partita-run/show/Format.h"
#include "tools/partita-run/show/PlanTable.h"
#include "tools/partita-run/show/ProfileTable.h"
#include "tools/partita-run/show/Progress.h"

#include "runtime/heap/StepHeap.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

namespace partita::run {

using runtime::DeviceMemory;
using runtime::Expected;
using runtime::Status;
using runtime::StepBinding;

namespace {

struct Result {
  double median = 0, p10 = 0, p90 = 0; ///< nanoseconds
  double samplesPerSecond = 0;
  double streamedPerSecond = 0; ///< where steps overlap
  double bubble = 0;
};

/// A line of what the system says of this process, in bytes. Unlike getrusage's
/// figure the peak begins with the program.
double statusBytes(const std::string &name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name + ":"))
      return std::strtod(line.c_str() + name.size() + 1, nullptr) * 1024;
  return 0;
}

/// Of all processes together.
double peakOfAll(const Measurement &measurement) {
  double bytes = 0;
  for (const ResidentMemory &each : measurement.resident)
    bytes += each.peak;
  return bytes;
}

/// The memory of all devices, on process 0. How much of an arena a step writes
/// is found in a session of its own, because looking for it costs time.
std::vector<DeviceMemory> measureMemory(Context &context,
                                        const StepBinding &binding) {
  std::vector<DeviceMemory> mine = context.session->memory();
  context.session.reset();
  const auto session = context.job.require(loadSession(
      context.options, context.model, context.job, /*measure=*/true));
  context.job.require(session->run(binding));
  const std::vector<DeviceMemory> measured = session->memory();
  for (size_t d = 0; d < mine.size(); ++d)
    mine[d].arena_touched = measured[d].arena_touched;
  const auto parts = context.job.gather<DeviceMemory>(mine);
  if (!context.job.root())
    return {};
  std::vector<DeviceMemory> all(size_t(context.model.devices));
  for (size_t process = 0; process < parts.size(); ++process) {
    const DeviceMemory *from = parts[process].data();
    for (int device : context.job.devicesOf(int(process), context.model))
      all[size_t(device)] = *from++;
  }
  return all;
}

constexpr int64_t kWhole = 1000; ///< of a progress bar
constexpr int kProfiled = 1000;  ///< steps whose events are kept

/// How much of the measurement `steps` steps are, warm-up included, of which
/// the measured ones took `ns` here; 1 or more when it is over. All processes
/// get the same.
double measuredPart(const Options &options, Job &job, int64_t steps,
                    double ns) {
  double part = double(steps) / (double(options.warmup) + options.runs);
  if (options.seconds == 0)
    return part;
  job.max({&ns, 1});
  return std::min(part, ns / 1e9 / options.seconds);
}

Result evaluate(const Model &model, const Measurement &measurement) {
  Result result;
  std::vector<double> sorted = measurement.wall;
  std::sort(sorted.begin(), sorted.end());
  result.median = percentile(sorted, 0.5);
  result.p10 = percentile(sorted, 0.1);
  result.p90 = percentile(sorted, 0.9);
  const double samples = double(model.samples() * model.microBatches);
  result.samplesPerSecond =
      result.median > 0 ? samples / (result.median / 1e9) : 0;
  result.streamedPerSecond =
      measurement.stream > 0 ? samples / (measurement.stream / 1e9) : 0;
  const double working = std::max(1, model.workingDevices());
  std::vector<double> bubbles;
  for (size_t i = 0; i < measurement.wall.size(); ++i)
    bubbles.push_back(1 -
                      measurement.busy[i] / (working * measurement.wall[i]));
  if (std::any_of(bubbles.begin(), bubbles.end(),
                  [](double bubble) { return std::isnan(bubble); })) {
    result.bubble = std::nan("");
    return result;
  }
  std::sort(bubbles.begin(), bubbles.end());
  result.bubble = percentile(bubbles, 0.5);
  return result;
}

void printJson(const Model &model, const Job &job, const Result &result,
               const Measurement &measurement, const ProfileTable *profile) {
  nlohmann::ordered_json json = {
      {"artifact", model.file},
      {"devices", model.devices},
      {"micro_batches", model.microBatches},
      {"samples_per_step", model.samples() * model.microBatches},
      {"runs", measurement.steps},
      {"median_ms", result.median / 1e6},
      {"p10_ms", result.p10 / 1e6},
      {"p90_ms", result.p90 / 1e6},
      {"samples_per_s", result.samplesPerSecond},
      {"stream_samples_per_s", result.streamedPerSecond},
      {"bubble_measured", result.bubble},
      {"bubble_predicted", model.plan->bubble()},
      {"predicted_ms", double(model.plan->step_ns()) / 1e6},
      {"predicted_for",
       {{"machine", runtime::text(model.plan->machine())},
        {"threads", model.plan->threads()}}},
      {"heap_allocations", int64_t(measurement.heap)},
      {"peak_resident_bytes", int64_t(peakOfAll(measurement))},
      {"io_bytes", model.ioBytes()},
      {"processes", nlohmann::ordered_json::array()},
      {"memory", nlohmann::ordered_json::array()}};
  for (size_t i = 0; i < measurement.resident.size(); ++i) {
    const ResidentMemory &memory = measurement.resident[i];
    std::vector<std::string> names;
    for (int device : job.devicesOf(int(i), model))
      names.push_back(model.deviceName(device));
    json["processes"].push_back(
        {{"devices", names},
         {"loaded_resident_bytes", int64_t(memory.loaded)},
         {"peak_resident_bytes", int64_t(memory.peak)}});
  }
  for (size_t d = 0; d < measurement.memory.size(); ++d) {
    const DeviceMemory &memory = measurement.memory[d];
    json["memory"].push_back({{"device", model.deviceName(int(d))},
                              {"planned_bytes", memory.planned},
                              {"used_bytes", memory.used()},
                              {"arena_bytes", memory.arena},
                              {"arena_touched_bytes", memory.arena_touched},
                              {"parameter_bytes", memory.parameters},
                              {"packed_bytes", memory.packed},
                              {"workspace_bytes", memory.workspace},
                              {"staging_bytes", memory.staging}});
  }
  if (profile)
    json["profile"] = profile->json(model);
  std::printf("%s\n", dump(json).c_str());
}

void printText(const Model &model, const Result &result,
               const Measurement &measurement, int warmup) {
  std::printf("%s: %s, %s, %s of %s a step\n", model.file.c_str(),
              countOf(model.devices, "device").c_str(),
              runtime::text(model.plan->schedule()),
              countOf(model.microBatches, "micro-batch", "es").c_str(),
              countOf(model.samples(), "sample").c_str());
  std::printf("%lld steps measured, after %d to warm up\n\n",
              static_cast<long long>(measurement.steps), warmup);
  std::printf("step     median %s   p10 %s   p90 %s   predicted %s%s\n",
              timeText(result.median).c_str(), timeText(result.p10).c_str(),
              timeText(result.p90).c_str(),
              timeText(double(model.plan->step_ns())).c_str(),
              predictedFor(*model.plan).c_str());
  std::printf("samples  %s a second, one step at a time; %s in a stream of "
              "steps\n",
              numberText(result.samplesPerSecond).c_str(),
              numberText(result.streamedPerSecond).c_str());
  std::printf("bubble   %s   predicted %s\n",
              std::isnan(result.bubble)
                  ? "not measured on GPUs (--profile-table does)"
                  : ("measured " + percentText(result.bubble)).c_str(),
              percentText(model.plan->bubble()).c_str());
  std::printf("heap     %lld allocations in the measured steps\n",
              static_cast<long long>(measurement.heap));
  std::printf("memory   %s resident at the peak, program and libraries "
              "included; %s of it inputs and outputs of a step\n\n",
              bytesText(int64_t(peakOfAll(measurement))).c_str(),
              bytesText(model.ioBytes()).c_str());
  Table table({"device", ">planned", ">used", ">arena", ">parameters",
               ">packed", ">workspace"});
  for (size_t d = 0; d < measurement.memory.size(); ++d) {
    const DeviceMemory &memory = measurement.memory[d];
    table.add({model.deviceName(int(d)), bytesText(memory.planned),
               bytesText(memory.used()), bytesText(memory.arena_touched),
               bytesText(memory.parameters), bytesText(memory.packed),
               bytesText(memory.workspace)});
  }
  std::fputs(table.text().c_str(), stdout);
}

} // namespace

double percentile(const std::vector<double> &sorted, double q) {
  if (sorted.empty())
    return 0;
  double position = q * double(sorted.size() - 1);
  size_t below = size_t(std::floor(position));
  size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] +
         (position - double(below)) * (sorted[above] - sorted[below]);
}

WholeStep::WholeStep(Context &context, Feed &feed) {
  feed.fillWhole(binding);
  for (const Port &port : context.model.outputs) {
    const bool used = port.usedBy(context.job.devices());
    outputs.push_back(context.job.require(runtime::Arena::map(
        used ? size_t(port.bytes()) * size_t(context.model.microBatches) : 0,
        "outputs")));
    binding.outputs.push_back(outputs.back().data());
  }
}

Measurement measureSteps(Context &context, const StepBinding &binding) {
  const Options &options = context.options;
  Measurement result;
  Progress progress("measuring", kWhole, context.job.root() && !options.json);
  ResidentMemory resident = {statusBytes("VmRSS"), 0};
  double elapsed = 0; // ns of measured steps
  Sample sample;
  bool last = false;
  for (int i = 0; !last; ++i) {
    // Steps begin together, or a process would fill its pipeline while others
    // still drain theirs and the times would not be those of a step.
    context.job.barrier();
    if (i == options.warmup)
      result.heap = -double(runtime::stepHeapCounts().heap);
    auto begin = std::chrono::steady_clock::now();
    Status status = context.session->run(binding);
    std::chrono::duration<double, std::nano> wall =
        std::chrono::steady_clock::now() - begin;
    context.job.require(status);
    if (i >= options.warmup)
      elapsed += wall.count();
    const double done = measuredPart(options, context.job, i + 1, elapsed);
    progress.update(int64_t(done * kWhole));
    if (i < options.warmup)
      continue;
    last = done >= 1;
    const std::vector<int64_t> &busy = context.session->busyNs();
    // A trace shows the last step, the table medians of the first ones.
    if (context.profile &&
        ((options.wantsAllSteps() && i - options.warmup < kProfiled) || last))
      context.profile->add(context.session->profile(), i - options.warmup);
    const std::optional<size_t> place = sample.next();
    if (!place)
      continue;
    if (*place == result.wall.size()) {
      result.wall.emplace_back();
      result.busy.emplace_back();
    }
    result.wall[*place] = wall.count();
    double &all = result.busy[*place] = 0;
    for (int64_t ns : busy)
      all += ns < 0 ? std::nan("") : double(ns);
  }
  result.steps = sample.count();
  result.heap += double(runtime::stepHeapCounts().heap);
  (void)reportNan(context);
  context.job.max(result.wall);
  if (context.profile)
    for (double wall : result.wall)
      context.profile->addStep(wall);
  context.job.sum(result.busy);
  context.job.sum({&result.heap, 1});
  resident.peak = statusBytes("VmHWM");
  for (const auto &part : context.job.gather<ResidentMemory>({&resident, 1}))
    result.resident.push_back(part.front());
  return result;
}

namespace {

/// Nanoseconds a step of `steps` that overlap.
double measureStream(Context &context, Feed &feed, int64_t steps) {
  constexpr int64_t kMost = runtime::Session::kMostSteps;
  std::vector<std::unique_ptr<WholeStep>> whole;
  for (int64_t i = 0; i < std::min(steps, kMost); ++i)
    whole.push_back(std::make_unique<WholeStep>(context, feed));
  // New memory costs a page fault for each of its pages.
  const int64_t sequences = context.model.plan->sequences();
  for (int64_t i = 0; i < std::max(std::min(steps, kMost), sequences); ++i) {
    runtime::StepBinding &binding = whole[size_t(i) % whole.size()]->binding;
    binding.sequence = int(i % sequences);
    context.job.require(context.session->run(binding));
  }
  std::array<uint64_t, size_t(kMost)> tickets = {};
  context.job.barrier();
  auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < steps + kMost; ++i) {
    uint64_t &ticket = tickets[size_t(i % kMost)];
    if (i >= kMost && i - kMost < steps)
      context.job.require(context.session->wait(ticket));
    if (i >= steps)
      continue;
    runtime::StepBinding &binding = whole[size_t(i % kMost)]->binding;
    binding.sequence = int(i % sequences);
    ticket = context.job.require(context.session->submit(binding));
  }
  std::chrono::duration<double, std::nano> wall =
      std::chrono::steady_clock::now() - begin;
  double ns = wall.count() / double(steps);
  context.job.max({&ns, 1});
  return ns;
}

} // namespace

int runBenchmark(Context &context, const InputTensors &inputs) {
  const Model &model = context.model;
  Expected<Feed> feed = Feed::create(model, inputs, context.job.devices());
  if (!context.job.allWell(feed.status()))
    return 1;
  const WholeStep step(context, *feed);
  Measurement measurement = measureSteps(context, step.binding);
  measurement.stream = measureStream(context, *feed, measurement.steps);
  measurement.memory = measureMemory(context, step.binding);
  std::optional<ProfileTable> profile;
  if (context.options.profileTable) {
    std::vector<Profile::Event> events = context.profile->gather(context.job);
    if (context.job.root())
      profile.emplace(model, events, context.profile->stepNs());
  }
  if (!context.job.root())
    return 0;
  Result result = evaluate(model, measurement);
  if (context.options.json)
    printJson(model, context.job, result, measurement,
              profile ? &*profile : nullptr);
  else
    printText(model, result, measurement, context.options.warmup);
  if (!context.options.json && profile)
    std::fputs(("\n" + profile->text(model, context.options.top)).c_str(),
               stdout);
  return 0;
}

} // namespace partita::run
