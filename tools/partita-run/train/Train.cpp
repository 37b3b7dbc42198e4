//===- Train.cpp - partita-run --train ------------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Text.h"
#include "runtime/base/NearestName.h"
#include "runtime/data/DataArgument.h"
#include "runtime/data/Loader.h"
#include "runtime/io/PendingFile.h"
#include "runtime/train/EventFile.h"
#include "runtime/train/TrainLog.h"
#include "runtime/trainer/Checkpoints.h"
#include "runtime/trainer/TrainedModel.h"
#include "runtime/trainer/Trainer.h"
#include "tools/partita-run/Job.h"
#include "tools/partita-run/Run.h"
#include "tools/partita-run/measure/ModelTimes.h"
#include "tools/partita-run/show/ProfileTable.h"
#include "tools/partita-run/show/Progress.h"
#include "tools/partita-run/train/Sameness.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>

namespace partita::run {
namespace {

using runtime::Expected;
using runtime::Status;
using runtime::train::Evaluation;
using runtime::train::StepResult;
using runtime::train::Trainer;
using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The names of all inputs, for messages.
std::string namesOf(const Trainer &trainer) {
  std::string names;
  for (const auto &input : trainer.inputs())
    names += (names.empty() ? "'" : ", '") + input.name + "'";
  return names;
}

/// What --data, or --eval-data, says: the samples of each input.
Expected<std::vector<data::LoaderInput>>
openData(const Trainer &trainer, const std::vector<std::string> &arguments,
         const char *flag) {
  std::vector<data::LoaderInput> inputs;
  for (const auto &input : trainer.inputs())
    inputs.push_back({input.name, nullptr, input.dtype, input.shape});
  for (const std::string &text : arguments) {
    const std::string said = std::string(flag) + " " + text + ": ";
    const data::DataArgument argument =
        PARTITA_TRY(within(said, data::parseDataArgument(text)));
    auto found = std::find_if(inputs.begin(), inputs.end(),
                              [&](const data::LoaderInput &each) {
                                return each.name == argument.input;
                              });
    if (found == inputs.end())
      return Status::error(said + "there is no input '" + argument.input +
                           "'; the inputs are " + namesOf(trainer));
    if (found->samples)
      return Status::error(std::string(flag) + ": the samples of '" +
                           argument.input + "' are given twice");
    found->samples =
        PARTITA_TRY(data::openDataset(argument.path, argument.options));
    found->scale = argument.scale;
    const auto &scales = trainer.setup().scales;
    if (auto scale = scales.find(argument.input);
        scale != scales.end() && argument.scale == data::Scale())
      found->scale = scale->second;
  }
  for (const data::LoaderInput &input : inputs)
    if (!input.samples)
      return Status::error(std::string(flag) + ": the samples of '" +
                           input.name + "' are not given; write " + flag + " " +
                           input.name + "=FILE");
  return inputs;
}

/// One run of partita-run --train. With several processes, all do the same, and
/// the first one prints and writes files.
class Training {
public:
  Training(const Options &options, Job &job) : options(options), job(job) {}

  /// An error is the same in all processes.
  Status run() {
    PARTITA_TRY(open());
    job.stopOnSignals();
    announce();
    begin = reported = Clock::now();
    firstStep = trainer->steps();
    bar.emplace("training", lastStep - firstStep, !options.json && job.root());
    std::vector<const uint8_t *> pointers;
    while (trainer->steps() < lastStep && !stops) {
      auto loaded = PARTITA_TRY(nextOf(*loader));
      if (!loaded)
        break;
      const data::LoadedStep &step = *loaded;
      const runtime::train::Progress before = next;
      const int64_t epoch = step.epoch;
      next.epoch = step.epoch;
      next.sample = step.position + trainer->samplesPerStep();
      next.metrics.clear();
      pointers.clear();
      for (const runtime::Tensor &tensor : step.inputs)
        pointers.push_back(tensor.data());
      const Clock::time_point stepBegun = Clock::now();
      auto result = trainer->step(pointers);
      loader->release(loaded);
      if (!result)
        return saveAfter(result.status(), before);
      note(*result);
      record(secondsSince(stepBegun));
      const bool endsEpoch =
          next.sample + trainer->samplesPerStep() > loader->samples();
      if (endsEpoch)
        next.epoch += 1, next.sample = 0;
      stops = job.stopAsked();
      const bool isLast = trainer->steps() == lastStep || stops;
      const bool evaluates = isLast || isDue(training.evalEvery, endsEpoch);
      if (evaluates || isDue(training.reportEvery)) {
        PARTITA_TRY(report(epoch, evaluates));
      } else if (isDue(training.outputsEvery)) { // the loss of this very step
        Progress::wipe();
        PARTITA_TRY(tell(lineOf(epoch)));
      }
      if (checkpoints &&
          (isLast || isDue(training.checkpointEvery, endsEpoch) ||
           (evaluates && !training.keepBest.empty())))
        PARTITA_TRY(save());
    }
    Progress::wipe();
    return finish();
  }

private:
  Status open() {
    PARTITA_TRY(openTrainer());
    PARTITA_TRY(job.agree(setStates()));
    PARTITA_TRY(openCheckpoints());
    PARTITA_TRY(job.agree(openSamples()));
    PARTITA_TRY(compareSamples());
    return checkpoints ? job.agree(job.root() ? openLogs() : Status())
                       : Status();
  }

  Status openTrainer() {
    auto artifacts = runtime::Artifact::openTraining(options.artifact);
    PARTITA_TRY(job.agree(artifacts.status()));
    model = std::make_unique<const Model>(artifacts->train);
    PARTITA_TRY(job.agree(job.check(*model, /*plan=*/0, options.deviceMap)));
    // What they do together from here on depends on flags.
    PARTITA_TRY(job.requireSame("flags of --train", flagsText(options)));
    trainer = PARTITA_TRY(Trainer::open(options.artifact,
                                        sessionOptions(options, *model, job),
                                        job.distributed() ? &job : nullptr));
    trainer->setSeed(training.seed);
    return Status();
  }

  /// What training begins with, but for a checkpoint.
  Status setStates() {
    PARTITA_TRY(checkFolderOf(options.profile));
    if (!options.calibrate.empty())
      PARTITA_TRY(readMachine(options, *model, job));
    if (!training.exportTo.empty() && job.root())
      PARTITA_TRY(within("--export: ",
                         runtime::train::checkExport(*trainer, options.artifact,
                                                     training.exportTo)));
    drawnStates = PARTITA_TRY(trainer->drawInitialStates());
    if (training.load.empty())
      return Status();
    auto unused = runtime::train::loadWeights(*trainer, training.load);
    if (unused && !unused->empty() && job.root())
      remark("--load: " + *unused);
    return unused.status();
  }

  Status openSamples() {
    auto inputs = PARTITA_TRY(openData(*trainer, training.data, "--data"));
    data::LoaderOptions order;
    order.samplesPerStep = trainer->samplesPerStep();
    order.seed = training.seed;
    order.epoch = next.epoch;
    order.position = next.sample;
    order.order = training.order == "in-order" ? data::Order::Kind::inOrder
                  : training.order == "drawn"  ? data::Order::Kind::drawn
                                               : data::Order::Kind::shuffled;
    PARTITA_TRY(describe(inputs, samplesSaid));
    loader = PARTITA_TRY(data::Loader::create(std::move(inputs), order));
    lastStep = training.steps > 0 ? training.steps
                                  : training.epochs * loader->stepsPerEpoch();
    if (!training.evalData.empty()) {
      evalInputs =
          PARTITA_TRY(openData(*trainer, training.evalData, "--eval-data"));
      PARTITA_TRY(describe(evalInputs, evalSamplesSaid));
      // What is wrong with it should not be found after an epoch.
      PARTITA_TRY(evaluation());
      const std::string &metric = training.keepBest;
      if (!metric.empty() && metric != "eval_loss" && !trainer->countsLabels())
        return Status::error("--keep-best " + metric +
                             ": this loss predicts no labels; give --keep-best "
                             "eval_loss");
    }
    return Status();
  }

  /// For other processes.
  Status describe(const std::vector<data::LoaderInput> &inputs,
                  std::string &said) const {
    if (!job.distributed())
      return Status();
    said = PARTITA_TRY(samplesText(inputs));
    return Status();
  }

  Status compareSamples() {
    PARTITA_TRY(job.requireSame("samples of --data", samplesSaid));
    PARTITA_TRY(job.requireSame("samples of --eval-data", evalSamplesSaid));
    return job.requireSame("newest checkpoint",
                           std::to_string(next.step) + " " +
                               std::to_string(next.epoch) + " " +
                               std::to_string(next.sample));
  }

  /// The next samples, if all processes have some.
  Expected<const data::LoadedStep *> nextOf(data::Loader &from) {
    auto loaded = from.next();
    uint8_t failed = !loaded.ok();
    job.join({&failed, 1});
    if (failed && job.distributed())
      return job.agree(loaded.status());
    return loaded;
  }

  /// Goes on from a checkpoint, if asked to.
  Status openCheckpoints() {
    if (training.checkpoint.empty())
      return Status();
    checkpoints.emplace(
        *trainer, training.checkpoint,
        runtime::train::Retention{.last = training.keep,
                                  .metric = training.keepBest,
                                  .larger_is_better =
                                      training.keepBest != "eval_loss"},
        "\norder " + training.order, training.allowChanges);
    if (training.resume) {
      auto resumed = PARTITA_TRY(checkpoints->resume(training.seed));
      for (const std::string &line : resumed.remarks)
        if (job.root())
          remark(line);
      next = resumed.progress;
      if (!options.json && job.root())
        std::printf("goes on after step %" PRId64 "\n", next.step);
    }
    next.seed = training.seed;
    return Status();
  }

  /// In process 0, before the first step. Fails if the folder has checkpoints
  /// of later steps.
  Status openLogs() {
    const std::string &folder = training.checkpoint;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
      return Status::error("cannot make the folder '" + folder +
                           "': " + error.message());
    PARTITA_TRY(checkpoints->maySave());
    log = PARTITA_TRY(runtime::train::TrainLog::open(folder + "/log.jsonl"));
    events = PARTITA_TRY(runtime::train::EventFile::create(
        folder,
        trainer->steps() > 0 ? std::optional(trainer->steps()) : std::nullopt));
    return Status();
  }

  Status save() {
    next.step = trainer->steps();
    return checkpoints->save(next);
  }

  /// The states that a step has left as they were are worth keeping.
  Status saveAfter(const Status &error, const runtime::train::Progress &at) {
    Progress::wipe();
    if (!checkpoints || !trainer->lostStates().ok() ||
        trainer->setup().onNonfinite.empty() || trainer->steps() == at.step)
      return error;
    next = at;
    const Status saved = save();
    return Status::error(
        error.message() +
        (saved.ok() ? " A checkpoint has been written; --resume goes on "
                      "before this step."
                    : " No checkpoint could be written: " + saved.message()));
  }

  void announce() {
    if (options.json || !job.root())
      return;
    std::printf(
        "%" PRId64 " samples, %" PRId64 " a step (%" PRId64 " x %" PRId64
        "), %" PRId64 " steps an epoch; %" PRId64 " steps\n",
        loader->samples(), trainer->samplesPerStep(), trainer->microBatches(),
        trainer->samplesPerMicroBatch(), loader->stepsPerEpoch(), lastStep);
    if (drawnStates > 0 && !training.resume)
      std::printf("begins with --init for %s, by --seed %" PRIu64 "\n",
                  abi::countOf(drawnStates, "state").c_str(), training.seed);
    if (loader->samplesDropped() > 0)
      std::printf("the last %" PRId64
                  " samples of an epoch fill no step and are left out\n",
                  loader->samplesDropped());
    const int64_t held = evalInputs.empty()
                             ? 0
                             : evalInputs.front().samples->count() %
                                   trainer->samplesPerMicroBatch();
    if (held > 0)
      std::printf("the last %" PRId64
                  " samples of --eval-data fill no micro-batch and are left "
                  "out\n",
                  held);
    std::fflush(stdout);
  }

  void note(const StepResult &result) {
    last = result;
    if (result.skipped) {
      if (skipped++ == 0 && job.root()) {
        Progress::wipe();
        remark(result.why + ". The step is skipped");
      }
    } else {
      lossSum += result.loss;
      ++lossCount;
    }
    char loss[32] = "";
    std::snprintf(loss, sizeof loss, "loss %.4f  ", last.loss);
    bar->update(trainer->steps() - firstStep, loss);
  }

  /// Keeps what was done in a step, if a profile is asked for. The first step
  /// touches memory that no other has touched.
  void record(double seconds) {
    const int64_t step = trainer->steps() - firstStep;
    const int64_t most =
        options.calibrate.empty() ? kProfiledSteps : kMeasuredSteps;
    if (!options.wantsProfile() || step > most + 1 ||
        (step == 1 && lastStep - firstStep > 1))
      return;
    profile.add(trainer->profile(), static_cast<int>(trainer->steps() - 1));
    profile.addStep(seconds * 1e9);
  }

  Status writeProfile() {
    if (!options.wantsProfile())
      return Status();
    std::vector<Profile::Event> events = profile.gather(job);
    if (!job.root())
      return Status();
    if (options.profileTable)
      std::printf("\nsamples were waited for in %s of the time\n%s",
                  abi::percentText(static_cast<double>(loader->waitedNs()) /
                                   1e9 / std::max(secondsSince(begin), 1e-9))
                      .c_str(),
                  ProfileTable(*model, events, profile.stepNs())
                      .text(*model, options.top)
                      .c_str());
    if (!options.calibrate.empty())
      PARTITA_TRY(addTimes(options, *model, job, events, profile.stepNs()));
    return options.profile.empty()
               ? Status()
               : runtime::writeFile(options.profile,
                                    traceText(*model, std::move(events)));
  }

  /// Whether something is to be done after this step that is done after so
  /// many; 0: nobody says how many.
  bool isDue(int64_t every, bool otherwise = false) const {
    return every > 0 ? trainer->steps() % every == 0 : otherwise;
  }

  Expected<std::unique_ptr<data::Loader>> evaluation() const {
    data::LoaderOptions order;
    order.samplesPerPart = trainer->samplesPerMicroBatch();
    order.samplesPerStep = order.samplesPerPart * trainer->mostEvaluated();
    order.order = data::Order::Kind::inOrder;
    order.buffers = 2;
    order.endEpoch = 1;
    return data::Loader::create(evalInputs, order);
  }

  Expected<Evaluation> evaluate() {
    auto held = evaluation();
    PARTITA_TRY(job.agree(held.status()));
    Evaluation total;
    std::vector<const uint8_t *> pointers;
    while (true) {
      auto loaded = PARTITA_TRY(nextOf(**held));
      if (!loaded)
        return total;
      pointers.clear();
      for (const runtime::Tensor &tensor : loaded->inputs)
        pointers.push_back(tensor.data());
      auto result = trainer->evaluate(
          pointers, loaded->samples / trainer->samplesPerMicroBatch());
      (*held)->release(loaded);
      if (!result)
        return result.status();
      total.add(*result);
    }
  }

  /// What --outputs calls the loss of a line.
  double lossOf() const {
    const std::string &outputs = training.outputs;
    if (outputs == "mean") // of none that counts: NaN
      return lossSum / static_cast<double>(lossCount);
    return outputs == "sum" ? lossSum : last.loss;
  }

  /// What every line says.
  nlohmann::ordered_json lineOf(int64_t epoch) const {
    nlohmann::ordered_json line = {{"step", trainer->steps()},
                                   {"epoch", epoch + 1},
                                   {"loss", lossOf()},
                                   {"learning_rate", last.learningRate}};
    if (last.gradientNorm > 0)
      line["gradient_norm"] = last.gradientNorm;
    if (skipped > 0)
      line["skipped"] = skipped;
    return line;
  }

  /// Prints a line, and keeps it in the logs.
  Status tell(const nlohmann::ordered_json &line) {
    if (!job.root())
      return Status();
    print(line);
    if (!checkpoints)
      return Status();
    const runtime::train::TrainRecord record = recordOf(line);
    Status status = log->write(record);
    if (status.ok())
      status = events->write(record);
    if (!status.ok() && job.distributed())
      job.fail(status); // the others go on
    return status;
  }

  /// A line of what was learned since the last one.
  Status report(int64_t epoch, bool evaluates) {
    Progress::wipe();
    const double seconds = secondsSince(reported);
    nlohmann::ordered_json line = lineOf(epoch);
    line["samples_per_second"] =
        static_cast<double>(lossCount * trainer->samplesPerStep()) /
        std::max(seconds, 1e-9);
    const int64_t waited = loader->waitedNs();
    line["data_wait"] = static_cast<double>(waited - waitedBefore) / 1e9 /
                        std::max(seconds, 1e-9);
    if (evaluates && !evalInputs.empty()) {
      auto result = PARTITA_TRY(evaluate());
      line["eval_loss"] = result.loss();
      if (result.labels > 0) {
        const auto labels = static_cast<double>(result.labels);
        line["accuracy"] = static_cast<double>(result.right) / labels;
        line["top5"] = static_cast<double>(result.rightOfFive) / labels;
        line["perplexity"] = std::exp(result.loss());
      }
      next.metrics = recordOf(line).eval;
    }
    PARTITA_TRY(tell(line));
    lossSum = 0;
    lossCount = 0;
    waitedBefore = waited;
    reported = Clock::now();
    return Status();
  }

  static runtime::train::TrainRecord
  recordOf(const nlohmann::ordered_json &line) {
    auto number = [&](const char *name) {
      return line.contains(name) ? std::optional<double>(line[name])
                                 : std::nullopt;
    };
    runtime::train::TrainRecord record;
    record.step = line["step"];
    record.epoch = line["epoch"];
    record.loss = number("loss");
    record.learning_rate = number("learning_rate");
    record.samples_per_second = number("samples_per_second");
    record.data_wait_fraction = number("data_wait");
    record.gradient_norm = number("gradient_norm");
    for (const char *name : {"eval_loss", "accuracy", "top5", "perplexity"})
      if (line.contains(name))
        record.eval[name] = line[name];
    return record;
  }

  void print(const nlohmann::ordered_json &line) {
    if (options.json) {
      std::printf("%s\n", line.dump().c_str());
      std::fflush(stdout);
      return;
    }
    std::printf("step %" PRId64 "  epoch %" PRId64 "  loss %.4f",
                line["step"].get<int64_t>(), line["epoch"].get<int64_t>(),
                line["loss"].get<double>());
    if (line.contains("eval_loss"))
      std::printf("  eval loss %.4f", line["eval_loss"].get<double>());
    if (line.contains("accuracy"))
      std::printf("  accuracy %.2f%%", 100 * line["accuracy"].get<double>());
    std::printf("  rate %.3g", line["learning_rate"].get<double>());
    if (line.contains("samples_per_second"))
      std::printf("  %.0f samples/s", line["samples_per_second"].get<double>());
    std::printf("\n");
    std::fflush(stdout);
  }

  Status finish() {
    if (stops && !options.json && job.root())
      std::printf("stopped after step %" PRId64 "%s\n", trainer->steps(),
                  checkpoints ? "; --resume goes on" : "");
    if (skipped > 0 && !options.json && job.root())
      std::printf("%s skipped, because their loss or gradients were not "
                  "finite\n",
                  abi::countOf(skipped, "step").c_str());
    PARTITA_TRY(job.agree(writeProfile()));
    if (training.exportTo.empty())
      return Status();
    return runtime::train::exportTrained(*trainer, options.artifact,
                                         training.exportTo);
  }

  static constexpr int64_t kProfiledSteps = 10;
  static constexpr int64_t kMeasuredSteps = 200; ///< by --calibrate

  const Options &options;
  const TrainingOptions &training = options.training;
  Job &job;
  std::unique_ptr<const Model> model; ///< the plan that learns
  Profile profile;
  std::unique_ptr<Trainer> trainer;
  std::unique_ptr<data::Loader> loader;
  std::vector<data::LoaderInput> evalInputs;
  std::optional<runtime::train::Checkpoints> checkpoints;
  std::optional<runtime::train::TrainLog> log;     ///< with checkpoints, in
  std::optional<runtime::train::EventFile> events; ///< process 0
  runtime::train::Progress next;                   ///< where training goes on
  std::string samplesSaid, evalSamplesSaid;        ///< what processes compare
  int64_t firstStep = 0, lastStep = 0;
  bool stops = false;      ///< somebody has asked for it
  int64_t drawnStates = 0; ///< states that do not begin as in the model
  StepResult last;
  int64_t skipped = 0; ///< steps of this run
  double lossSum = 0;  ///< since the last line
  int64_t lossCount = 0, waitedBefore = 0;
  Clock::time_point begin, reported;
  std::optional<Progress> bar;
};

} // namespace

int runTraining(const Options &options) {
  Expected<std::unique_ptr<Job>> job = Job::start(options);
  Status status = job.status();
  const bool root = !job || (*job)->root();
  if (job)
    status = Training(options, **job).run();
  if (status.ok())
    return 0;
  return root ? printError(status) : 1;
}

} // namespace partita::run
