//===- Run.cpp - Running samples through a loaded plan --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/Run.h"

#include "tools/cli/CommandLine.h"
#include "tools/partita-run/show/Progress.h"
#include "tools/partita-run/show/TensorSummary.h"

#include "runtime/abi/DeviceKinds.h"
#include "runtime/abi/Text.h"
#include "runtime/feed/Stream.h"
#include "runtime/io/TensorFiles.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <map>
#include <sstream>

namespace partita::run {

using runtime::Expected;
using runtime::NamedTensor;
using runtime::Session;
using runtime::Status;
using runtime::StepBinding;
using runtime::Tensor;

namespace {

/// A model may give two outputs one name; keys of an archive must differ.
std::vector<NamedTensor> nameOutputs(const Model &model,
                                     const std::vector<Tensor> &outputs) {
  std::vector<std::string> names = runtime::uniqueNames(namesOf(model.outputs));
  std::vector<NamedTensor> named;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (names[i] != model.outputs[i].name)
      remark("several outputs are named '" + model.outputs[i].name +
             "'; output " + std::to_string(model.outputs[i].index) +
             " is called '" + names[i] + "' here");
    named.push_back({names[i], outputs[i]});
  }
  return named;
}

} // namespace

void remark(const std::string &text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    std::fprintf(stderr, "partita-run: remark: %s\n", line.c_str());
}

int printError(const Status &status) {
  std::fprintf(stderr, "partita-run: error: %s\n", status.message().c_str());
  return 1;
}

int threadsOf(const Options &options, const Job &job) {
  const Job::Share &share = job.share();
  return options.threads > 0 ? options.threads
                             : std::max(1, share.cores / share.devices);
}

bool haveRoom(const Options &options, const Job &job) {
  const Job::Share &share = job.share();
  return threadsOf(options, job) * int64_t(share.devices) <= share.cores;
}

void remarkCores(const Options &options, const Job &job) {
  // A program that reads JSON is told nothing else.
  if (haveRoom(options, job) || !job.root() || options.json)
    return;
  const Job::Share &share = job.share();
  const int threads = threadsOf(options, job);
  remark(std::to_string(int64_t(threads) * share.devices) + " threads (" +
         abi::countOf(share.devices, "device") + " of " +
         std::to_string(threads) + ") share " +
         abi::countOf(share.cores, "core") + ", and wait for one another");
}

/// By device of the plan: the GPU that --devices says; empty if it says none.
static std::vector<int> placesOf(const Options &options, const Model &model) {
  cli::Devices given;
  if (options.devices.empty() ||
      !cli::parseDevices(options.devices, given).empty())
    return {};
  std::map<std::string, std::deque<int>> left; // by kind, in their order
  for (const cli::DeviceGroup &group : given.groups)
    left[group.kind].insert(left[group.kind].end(), group.places.begin(),
                            group.places.end());
  std::vector<int> places;
  bool any = false;
  for (const abi::Device *device : *model.plan->devices()) {
    std::deque<int> &own = left[abi::getName(device->kind())];
    places.push_back(own.empty() ? 0 : own.front());
    any |= !own.empty();
    if (!own.empty())
      own.pop_front();
  }
  return any ? places : std::vector<int>();
}

runtime::SessionOptions sessionOptions(const Options &options,
                                       const Model &model, const Job &job) {
  runtime::SessionOptions session;
  session.threads_per_device = threadsOf(options, job);
  session.first_core = job.share().before * session.threads_per_device;
  session.pin = options.pin;
  session.max_cpu_level = options.cpuLevel;
  session.keep_nan = options.strictNan;
  session.timeout_s = options.timeout;
  session.graphs = options.graphs;
  session.devices = job.devices();
  session.profile = options.wantsProfile();
  session.trust_weights = options.trustWeights;
  session.places = placesOf(options, model);
  if (session.places.empty())
    session.places = job.gpus();
  return session;
}

static Expected<std::unique_ptr<Session>>
openSession(const Model &model, Job &job,
            const runtime::SessionOptions &session) {
  Expected<std::shared_ptr<runtime::Communicator>> communicator =
      job.communicator(model, session.places);
  Expected<std::unique_ptr<Session>> made =
      communicator ? Session::create(model.artifact, session, *communicator)
                   : Expected<std::unique_ptr<Session>>(communicator.status());
  // Of a session that searches, it was said before.
  if (made && session.search == runtime::Search::none)
    remark((*made)->remark());
  // GPUs are connected when all processes are loaded: one that has failed says
  // so before the others wait for it.
  if (job.distributed() && job.allLoaded(made.ok()) && made)
    PARTITA_TRY((*communicator)->connect());
  return made;
}

Expected<std::unique_ptr<Session>> loadSession(const Options &options,
                                               const Model &model, Job &job,
                                               bool measure) {
  runtime::SessionOptions session = sessionOptions(options, model, job);
  session.measure_arena = measure;
  // Before something is measured a second time, they were checked.
  session.trust_weights |= measure;
  return openSession(model, job, session);
}

Expected<std::unique_ptr<Session>>
loadSearch(const Options &options, const Model &model, Job &job, bool keepNan) {
  runtime::SessionOptions session = sessionOptions(options, model, job);
  session.search = runtime::Search::nan;
  session.keep_nan = keepNan;
  session.profile = false;
  session.trust_weights = true;
  return openSession(model, job, session);
}

Status load(Context &context) {
  const Options &options = context.options;
  if (context.job.distributed() || options.measures() ||
      options.wantsProfile() || !options.graphs ||
      context.plans.planCount() > 1 ||
      !placesOf(options, context.model).empty() ||
      !Stream::suits(context.model)) {
    context.session =
        PARTITA_TRY(loadSession(options, context.model, context.job));
    return Status();
  }
  partita_options given;
  partita_default_options(&given);
  given.threads = threadsOf(options, context.job);
  given.pin = options.pin;
  given.strict_nan = options.strictNan;
  given.trust_weights = options.trustWeights;
  given.timeout_s = options.timeout;
  given.cpu_level = options.cpuLevel;
  context.embedded = PARTITA_TRY(Embedded::open(context.model, given));
  remark(context.embedded->remark());
  return Status();
}

bool keepsNan(const Context &context) {
  return context.session ? context.session->keepsNan()
                         : context.embedded->keepsNan();
}

bool reportNan(Context &context) {
  double dropped =
      context.session ? context.session->mayHaveDroppedNan() : false;
  context.job.max({&dropped, 1});
  // A plan whose steps are not done twice begins with code that keeps NaN.
  const bool changed = keepsNan(context) && !context.options.strictNan &&
                       !context.model.plan->full_steps();
  context.metNan = dropped != 0 || changed;
  if (context.metNan && context.job.root())
    remark("a step met NaN where fast code makes numbers of it" +
           std::string(changed ? ", and was computed again" : "") +
           "; --strict-nan begins with code that keeps NaN, and is slower");
  return dropped != 0;
}

namespace {

/// The error of a step: of a wrong index with its sample among those of all
/// steps.
Status errorOfStep(const Context &context, int64_t step, const Status &status) {
  if (context.session->badIndices().empty())
    return status;
  const Model &model = context.model;
  const runtime::BadIndex &bad = context.session->badIndices().front();
  std::optional<int64_t> sample = sampleOf(*model.plan, bad);
  if (sample)
    *sample += step * model.microBatches * model.samples();
  return Status::error(describe(*model.plan, bad, sample));
}

void runSteps(Context &context, Feed &feed, Collector &collector,
              Progress &progress) {
  // Steps overlap, but for a profile, which is of steps by themselves.
  const size_t most = context.profile ? 1 : Feed::kLanes;
  struct UnderWay {
    int64_t step;
    int microBatches;
    uint64_t ticket;
    std::chrono::steady_clock::time_point begin;
  };
  std::deque<UnderWay> underWay;
  auto finishFirst = [&] {
    const UnderWay first = underWay.front();
    underWay.pop_front();
    if (Status status = context.session->wait(first.ticket); !status.ok())
      context.job.fail(errorOfStep(context, first.step, status));
    std::chrono::duration<double, std::nano> wall =
        std::chrono::steady_clock::now() - first.begin;
    collector.take(first.step, first.microBatches);
    if (context.profile) {
      context.profile->add(context.session->profile(), int(first.step));
      context.profile->addStep(wall.count());
    }
    progress.update(first.step + 1);
  };
  StepBinding binding;
  for (int64_t step = 0; step < feed.steps(); ++step) {
    if (underWay.size() == most)
      finishFirst();
    feed.fill(step, binding);
    collector.bind(step, binding.micro_batches, binding);
    auto begin = std::chrono::steady_clock::now();
    const uint64_t ticket =
        context.job.require(context.session->submit(binding));
    underWay.push_back({step, binding.micro_batches, ticket, begin});
  }
  while (!underWay.empty())
    finishFirst();
}

} // namespace

Expected<std::vector<Tensor>>
runSamples(Context &context, const InputTensors &inputs, bool showProgress) {
  Feed feed =
      PARTITA_TRY(Feed::create(context.model, inputs, context.job.devices()));
  Collector collector = PARTITA_TRY(
      Collector::create(context.model, feed, context.job.devices()));
  // A search for NaN puts its session in the place of the one before.
  if (!context.session && !context.embedded)
    context.job.require(load(context));
  const bool kept = keepsNan(context);
  Progress progress("running", feed.steps(),
                    showProgress && context.job.root());
  if (context.embedded) {
    context.job.require(context.embedded->run(inputs, feed.samples(),
                                              collector.results(), progress));
  } else {
    runSteps(context, feed, collector, progress);
  }
  if (reportNan(context)) {
    // A process that does not run all devices cannot do that by itself.
    Options strict = context.options;
    strict.strictNan = true;
    context.session.reset();
    context.session =
        context.job.require(loadSession(strict, context.model, context.job));
    runSteps(context, feed, collector, progress);
  }
  // Code that keeps NaN does not tell that it met some.
  context.metNan &= !kept;
  context.job.gatherOutputs(context.model, collector.results());
  return std::move(collector.results());
}

/// Compares the outputs, writes them, or prints a summary. Returns the exit
/// status.
static int finishRun(Context &context, const std::vector<Tensor> &outputs) {
  const Model &model = context.model;
  Status status;
  if (!context.options.compare.empty()) {
    Expected<bool> same = true;
    if (context.job.root())
      same = compareWithReference(context.options, model, outputs);
    return context.job.allWell(same.status()) && *same ? 0 : 1;
  }
  if (context.job.root()) {
    std::vector<NamedTensor> named = nameOutputs(model, outputs);
    if (context.options.output.empty())
      std::fputs(summaryText(named).c_str(), stdout);
    else
      status = runtime::writeTensors(context.options.output, named);
  }
  return context.job.allWell(status) ? 0 : 1;
}

int runOnce(Context &context, const InputTensors &inputs) {
  Status status;
  Expected<std::vector<Tensor>> outputs =
      runSamples(context, inputs, /*showProgress=*/true);
  if (outputs && context.choice.padded)
    for (size_t i = 0; i < outputs->size() && status.ok(); ++i) {
      Expected<Tensor> cut =
          context.plans.cut(context.choice, i, (*outputs)[i]);
      status = cut.status();
      if (cut)
        (*outputs)[i] = std::move(*cut);
    }
  if (!context.job.allWell(outputs ? status : outputs.status()))
    return 1;
  const int result = finishRun(context, *outputs);
  // The outputs are safe then, whatever becomes of the search.
  remarkNan(context, inputs, *outputs);
  return result;
}

} // namespace partita::run
