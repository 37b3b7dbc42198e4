//===- Setup.h - How an artifact is trained ---------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What `partita-compile --train` was told, and what only those need to know who
// run the artifact (Plan.training).
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAINER_SETUP_H
#define PARTITA_RUNTIME_TRAINER_SETUP_H

#include "runtime/base/Status.h"
#include "runtime/data/Conversion.h"
#include "runtime/trainer/InitialValues.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace partita::runtime::train {

/// How the learning rate changes. See docs/training-file.md.
struct RateSchedule {
  std::string kind = "constant"; ///< step, linear, cosine, wsd
  int64_t warmup = 0, steps = 0, every = 0, decay = 0;
  double final = 0, factor = 1;

  /// The rate of a step, of which the first has number 0, where `base` is the
  /// rate without a schedule.
  double rate(double base, int64_t step) const;
};

/// What a loss compares with, as far as its text says it.
struct LossNames {
  std::string target;
  int64_t ignoreIndex = -100; ///< labels that do not count
};

struct Setup {
  std::string text; ///< as the artifact has it
  LossNames loss;
  std::string optimizer;
  /// What a step does whose loss or gradients are not finite, and which then
  /// changes no state: stop or skip. Empty: it loses the states.
  std::string onNonfinite;
  /// Of the parameters that no group names, and of each group.
  std::vector<double> learningRates, weightDecays;
  RateSchedule schedule;
  std::map<std::string, data::Scale> scales; ///< by integer input
  /// By state: what it is drawn from when training begins. Others begin with
  /// the values of the model.
  std::map<std::string, Distribution> initial;

  /// The rates of all groups in a step, of which the first has number 0.
  void rates(int64_t step, std::vector<double> &rates) const;
};

/// Reads Plan.training. `where` names the artifact.
Expected<Setup> parseSetup(const std::string &text, const std::string &where);

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAINER_SETUP_H
