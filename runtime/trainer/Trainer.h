//===- Trainer.h - A model that learns, step by step ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   auto trainer = Trainer::open("mnist.partita", {});
//   auto step = (*trainer)->step({image, label});     // one update
//   std::printf("%g\n", step->loss);
//   auto result = (*trainer)->evaluate({image, label});
//
// A trainer has two sessions, one that learns and one that evaluates. They
// share the states and the memory of the devices, and take turns.
//
// A training may have several processes (Processes.h), each with some of the
// devices, and with the states of these. All of them then call the same
// functions in the same order, with the same samples, and get the same results.
// Their errors are the same, too: what one process alone finds in a step ends
// all of them.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAINER_TRAINER_H
#define PARTITA_RUNTIME_TRAINER_TRAINER_H

#include "runtime/session/Session.h"
#include "runtime/trainer/Processes.h"
#include "runtime/trainer/Setup.h"
#include "runtime/trainer/StatePlaces.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace partita::runtime::train {

/// An input that samples are fed to. Dimension 0 counts samples.
struct DataInput {
  std::string name;
  abi::DType dtype = abi::DType::f32;
  std::vector<int64_t> shape; ///< of one sample
};

struct StepResult {
  double loss = 0;
  double learningRate = 0; ///< of the parameters that no group names
  double gradientNorm = 0; ///< before it was clipped; 0 if nobody asks for it
  /// The loss or the norm is not finite, so no state has changed
  /// (Setup::onNonfinite); `why` says where that comes from, the first time.
  bool skipped = false;
  std::string why;
};

/// Sums over samples.
struct Evaluation {
  double lossSum = 0;
  double lossCount = 0;
  int64_t labels = 0; ///< that count, if the loss compares with labels
  int64_t right = 0, rightOfFive = 0;

  double loss() const { return lossCount > 0 ? lossSum / lossCount : lossSum; }
  void add(const Evaluation &other);
};

class Trainer {
public:
  /// Opens an artifact that was compiled with --train. `all`: the processes of
  /// the training, which outlive the trainer; null: there is this one.
  static Expected<std::unique_ptr<Trainer>> open(const std::string &path,
                                                 const SessionOptions &options,
                                                 Processes *all = nullptr);
  ~Trainer();

  const Setup &setup() const;
  /// What a step takes: its tensors have `samplesPerStep` samples.
  const std::vector<DataInput> &inputs() const;
  int64_t samplesPerStep() const;
  int64_t microBatches() const;
  int64_t samplesPerMicroBatch() const;
  /// The most micro-batches that `evaluate` takes at once.
  int64_t mostEvaluated() const;
  /// Whether evaluations count the labels that are predicted.
  bool countsLabels() const;

  /// One update. `data`: for each input its samples, dense. What is wrong in an
  /// input, such as a label that is no class, is found before the step where
  /// the input itself shows it (InputCheck.h): an input error (Status), and no
  /// state has changed. Nor has any, and nor is the step counted, where a loss
  /// that is not finite stops the training (Setup::onNonfinite). After any
  /// other error of a step that was begun, the states are lost.
  Expected<StepResult> step(std::span<const uint8_t *const> data);
  /// An error in words if a step has failed after it had begun to change the
  /// states. Steps, evaluations and `readStates` fail then.
  Status lostStates() const;
  /// To be called when all states have been replaced, and training goes on
  /// after so many updates.
  void goOnAfter(int64_t steps);
  /// Updates so far. The next one has this number, for the schedule.
  int64_t steps() const;
  void setSteps(int64_t steps);
  /// For what draws random numbers in a step, e.g. a dropout; 0 unless it is
  /// said.
  void setSeed(uint64_t seed);
  /// Draws the states that begin with random numbers (Setup::initial), by the
  /// seed. Before this they have the values of the model. The states that were
  /// drawn, those of all processes.
  Expected<int64_t> drawInitialStates();

  /// Computes the loss of so many micro-batches, and how many labels are
  /// predicted. No state changes. The sums are the same, to the last bit, if
  /// micro-batches are given one by one.
  Expected<Evaluation> evaluate(std::span<const uint8_t *const> data,
                                int64_t microBatches = 1);

  /// Null: there is one process.
  Processes *processes() const;
  /// Plan.states: parameters, and what the optimizer keeps.
  int64_t stateCount() const;
  const abi::State &state(int64_t index) const;
  const StatePlaces &statePlaces() const;
  /// States of this process.
  Status readState(int64_t index, void *to) const;
  Status writeState(int64_t index, const void *from);

  const abi::Plan &plan() const; ///< of the session that learns
  /// What this process did in the last update (SessionOptions::profile).
  const std::vector<ProfileEvent> &profile() const;
  std::vector<DeviceMemory> memory() const;
  std::string remark() const;

private:
  struct Impl;
  explicit Trainer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAINER_TRAINER_H
