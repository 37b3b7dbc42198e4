//===- Trainer.cpp - Models that learn, for C -----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/trainer/Trainer.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/base/DeviceThread.h"
#include "runtime/capi/StateList.h"
#include "runtime/trainer/Checkpoints.h"
#include "runtime/trainer/States.h"
#include "runtime/trainer/TrainedModel.h"

#include <algorithm>
#include <memory>
#include <mutex>

using namespace partita::capi;
using partita::runtime::DeviceThread;
using partita::runtime::Expected;
using namespace partita::runtime::train;

namespace {

/// What must be the same to go on, as partita-run says it.
std::string orderText(const partita_position &position) {
  return position.order ? std::string("\norder ") + position.order : "";
}

Expected<partita_position> readPosition(const partita_position *given) {
  partita_position position = {sizeof position, 0, 0, nullptr};
  if (given)
    PARTITA_TRY(readStruct(given, position, "partita_position"));
  return position;
}

Status noPath(const char *what) {
  return Status::error(std::string("there is no path of ") + what);
}

} // namespace

struct partita_trainer {
  std::string path;
  uint64_t seed = 0;
  bool allow_changes = false;
  std::vector<PortInfo> inputs;
  StateList states{"trainer"};
  std::string remark;
  std::unique_ptr<Trainer> trainer;
  mutable std::mutex turns; ///< of programs that call
  /// It makes all calls of the trainer, which it may pin to cores; programs
  /// call from any thread. Last: it uses all others.
  std::shared_ptr<DeviceThread> thread = partita::runtime::startDeviceThread();

  ~partita_trainer() {
    (void)run([this] { return trainer.reset(), Status(); });
  }

  /// What `function` returns in the trainer's thread, after the calls of
  /// others.
  template <typename Function> Status run(Function function) const {
    struct Call final : DeviceThread::Job {
      explicit Call(Function &function) : function(function) {}
      void run() override { result = caught(function); }
      Function &function;
      Status result;
    } call(function);
    // Waits for this call alone.
    std::lock_guard<std::mutex> lock(turns);
    thread->post(call);
    thread->drain();
    return std::move(call.result);
  }

  Status open(const partita_trainer_options &options) {
    auto artifacts =
        PARTITA_TRY(partita::runtime::Artifact::openTraining(path));
    const auto session = sessionOf(options, artifacts.train->plan());
    trainer = PARTITA_TRY(Trainer::open(path, session));
    seed = options.seed;
    allow_changes = options.allow_changes != 0;
    trainer->setSeed(seed);
    PARTITA_TRY(trainer->drawInitialStates());
    remark = trainer->remark();
    describeInputs();
    return Status();
  }

  void describeInputs() {
    for (const DataInput &input : trainer->inputs()) {
      partita::feed::Port port;
      port.name = input.name;
      port.dtype = input.dtype;
      port.shape = input.shape;
      port.shape.insert(port.shape.begin(), 1);
      port.batchAxis = 0;
      // No axis has several sizes.
      const size_t axes = port.shape.size();
      inputs.emplace_back(port, 1, std::vector<int>(axes, -1),
                          std::vector<int64_t>(axes));
    }
    for (int64_t i = 0; i < trainer->stateCount(); ++i)
      states.add(trainer->plan(), trainer->state(i), i);
  }

  /// The inputs' addresses for `samples` samples from `first` on.
  Expected<std::vector<const uint8_t *>> addresses(const void *const *given,
                                                   int64_t first) const {
    if (!given)
      return Status::error("there is no list of inputs");
    std::vector<const uint8_t *> all;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!given[i] && inputs[i].bytes > 0)
        return Status::error("the input '" + inputs[i].port.name +
                             "' is not given");
      all.push_back(static_cast<const uint8_t *>(given[i]) +
                    first * inputs[i].bytes);
    }
    return all;
  }

  Status step(const void *const *given, int64_t samples,
              partita_step_result *result) {
    partita_step_result known = {};
    if (result)
      PARTITA_TRY(readStruct(result, known, "partita_step_result"));
    if (samples != trainer->samplesPerStep())
      return Status::error("there are " + std::to_string(samples) +
                           " samples, and a step takes " +
                           std::to_string(trainer->samplesPerStep()));
    auto data = PARTITA_TRY(addresses(given, 0));
    auto stepped = trainer->step(data);
    if (!stepped || !result)
      return stepped.status();
    return fillIn(result,
                  {0, trainer->steps(), stepped->loss, stepped->learningRate,
                   stepped->gradientNorm, stepped->skipped},
                  "partita_step_result");
  }

  Status evaluate(const void *const *given, int64_t samples,
                  partita_evaluation *result) {
    const int64_t each = trainer->samplesPerMicroBatch();
    if (samples < 1 || samples % each != 0)
      return Status::error("there are " + std::to_string(samples) +
                           " samples, and an evaluation takes a multiple of " +
                           std::to_string(each));
    Evaluation total;
    int64_t count = 0;
    for (int64_t first = 0; first < samples; first += count * each) {
      auto data = PARTITA_TRY(addresses(given, first));
      count = std::min((samples - first) / each, trainer->mostEvaluated());
      auto evaluated = trainer->evaluate(data, count);
      if (!evaluated && evaluated.status().isInputError() && first > 0)
        return Status::inputError("after the first " + std::to_string(first) +
                                  " samples: " + evaluated.status().message());
      if (!evaluated)
        return evaluated.status();
      total.add(*evaluated);
    }
    return fillIn(result,
                  {0, total.loss(), total.lossSum, total.lossCount,
                   total.labels, total.right, total.rightOfFive},
                  "partita_evaluation");
  }

  Status load(const char *folder, partita_position *position,
              Expected<Resumed> (Checkpoints::*take)(uint64_t)) {
    if (!folder)
      return noPath("a checkpoint");
    auto wanted = PARTITA_TRY(readPosition(position));
    Checkpoints checkpoints(*trainer, folder, {}, orderText(wanted),
                            allow_changes);
    auto resumed = PARTITA_TRY((checkpoints.*take)(seed));
    remark = trainer->remark();
    for (const std::string &line : resumed.remarks)
      remark += (remark.empty() ? "" : "\n") + line;
    if (!position)
      return Status();
    return fillIn(
        position,
        {0, resumed.progress.epoch, resumed.progress.sample, wanted.order},
        "partita_position");
  }
};

namespace {

/// `function` in the thread of a trainer that must be there.
template <typename Function>
partita_status guardTrainer(const partita_trainer *trainer, Function function) {
  return guardOf(trainer, [&] { return trainer->run(function); });
}

} // namespace

extern "C" {

void partita_default_trainer_options_sized(partita_trainer_options *options,
                                           size_t size) {
  if (!options)
    return (void)done(
        Status::error("there is no place for partita_trainer_options"));
  const partita_trainer_options defaults = {size, 0, 1, 0, 0, 60, 0, 0};
  std::memcpy(options, &defaults, std::min(size, sizeof defaults));
}

partita_status partita_trainer_open(const char *path,
                                    const partita_trainer_options *given,
                                    partita_trainer **trainer) {
  return guard([&] {
    if (!path || !trainer)
      return Status::error("there is no path, or no place for the trainer");
    *trainer = nullptr;
    partita_trainer_options options;
    partita_default_trainer_options(&options);
    if (given)
      PARTITA_TRY(readStruct(given, options, "partita_trainer_options"));
    PARTITA_TRY(checkOptions(options, "partita_trainer_options"));
    auto made = std::make_unique<partita_trainer>();
    made->path = path;
    Status status = made->run([&] { return made->open(options); });
    if (status.ok())
      *trainer = made.release();
    return status;
  });
}

void partita_trainer_close(partita_trainer *trainer) { delete trainer; }

const char *partita_trainer_remark(const partita_trainer *trainer) {
  return ask<const char *>(trainer, "",
                           [&] { return trainer->remark.c_str(); });
}

size_t partita_trainer_input_count(const partita_trainer *trainer) {
  return ask(trainer, size_t(0), [&] { return trainer->inputs.size(); });
}

partita_status partita_trainer_input(const partita_trainer *trainer,
                                     size_t index, partita_port *port) {
  return guardOf(trainer, [&] {
    return describe("trainer", trainer->inputs, index, "inputs", port);
  });
}

partita_status partita_trainer_find_input(const partita_trainer *trainer,
                                          const char *name, size_t *index) {
  return guardOf(trainer, [&] {
    return find("trainer", trainer->inputs, name, "input", index);
  });
}

int64_t partita_trainer_step_samples(const partita_trainer *trainer) {
  return ask(trainer, int64_t(0),
             [&] { return trainer->trainer->samplesPerStep(); });
}

int64_t partita_trainer_evaluation_samples(const partita_trainer *trainer) {
  return ask(trainer, int64_t(0),
             [&] { return trainer->trainer->samplesPerMicroBatch(); });
}

partita_status partita_trainer_step(partita_trainer *trainer,
                                    const void *const *inputs, int64_t samples,
                                    partita_step_result *result) {
  return guardTrainer(trainer,
                      [&] { return trainer->step(inputs, samples, result); });
}

partita_status partita_trainer_evaluate(partita_trainer *trainer,
                                        const void *const *inputs,
                                        int64_t samples,
                                        partita_evaluation *evaluation) {
  return guardTrainer(
      trainer, [&] { return trainer->evaluate(inputs, samples, evaluation); });
}

int64_t partita_trainer_steps(const partita_trainer *trainer) {
  int64_t steps = 0;
  (void)guardTrainer(trainer, [&] {
    steps = trainer->trainer->steps();
    return Status();
  });
  return steps;
}

partita_status partita_trainer_set_steps(partita_trainer *trainer,
                                         int64_t steps) {
  return guardTrainer(trainer, [&] {
    if (steps < 0)
      return Status::error("there cannot be " + std::to_string(steps) +
                           " steps: give 0 or more");
    trainer->trainer->setSteps(steps);
    return Status();
  });
}

size_t partita_trainer_state_count(const partita_trainer *trainer) {
  return ask(trainer, size_t(0), [&] { return trainer->states.size(); });
}

partita_status partita_trainer_state(const partita_trainer *trainer,
                                     size_t index, partita_state *state) {
  return guardOf(trainer,
                 [&] { return trainer->states.describe(index, state); });
}

partita_status partita_trainer_find_state(const partita_trainer *trainer,
                                          const char *name, size_t *index) {
  return guardOf(trainer, [&] { return trainer->states.find(name, index); });
}

partita_status partita_trainer_get_state(const partita_trainer *trainer,
                                         size_t index, void *to, size_t bytes) {
  return guardTrainer(trainer, [&] {
    PARTITA_TRY(trainer->states.check(index, to, bytes));
    return trainer->trainer->readState(static_cast<int64_t>(index), to);
  });
}

partita_status partita_trainer_set_state(partita_trainer *trainer, size_t index,
                                         const void *from, size_t bytes) {
  return guardTrainer(trainer, [&] {
    PARTITA_TRY(trainer->states.check(index, from, bytes));
    return trainer->trainer->writeState(static_cast<int64_t>(index), from);
  });
}

partita_status partita_trainer_save(partita_trainer *trainer,
                                    const char *folder, int keep,
                                    const partita_position *given) {
  return guardTrainer(trainer, [&] {
    if (!folder)
      return noPath("a folder for checkpoints");
    if (keep < 1)
      return Status::error(std::to_string(keep) +
                           " checkpoints cannot stay: keep at least 1");
    auto position = PARTITA_TRY(readPosition(given));
    Progress progress;
    progress.step = trainer->trainer->steps();
    progress.seed = trainer->seed;
    progress.epoch = position.epoch;
    progress.sample = position.sample;
    Checkpoints checkpoints(*trainer->trainer, folder,
                            {.last = keep, .metric = {}}, orderText(position));
    return checkpoints.save(progress);
  });
}

partita_status partita_trainer_resume(partita_trainer *trainer,
                                      const char *folder,
                                      partita_position *position) {
  return guardTrainer(trainer, [&] {
    return trainer->load(folder, position, &Checkpoints::resume);
  });
}

partita_status partita_trainer_load_checkpoint(partita_trainer *trainer,
                                               const char *checkpoint,
                                               partita_position *position) {
  return guardTrainer(trainer, [&] {
    return trainer->load(checkpoint, position, &Checkpoints::load);
  });
}

partita_status partita_trainer_load_weights(partita_trainer *trainer,
                                            const char *path) {
  return guardTrainer(trainer, [&] {
    if (!path)
      return noPath("a file of safetensors");
    auto unused = PARTITA_TRY(loadWeights(*trainer->trainer, path));
    trainer->remark = trainer->trainer->remark();
    if (!unused.empty())
      trainer->remark += (trainer->remark.empty() ? "" : "\n") + unused;
    return Status();
  });
}

partita_status partita_trainer_export(const partita_trainer *trainer,
                                      const char *path) {
  return guardTrainer(trainer, [&] {
    return path ? exportTrained(*trainer->trainer, trainer->path, path)
                : noPath("a file for the trained model");
  });
}
}
