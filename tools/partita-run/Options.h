//===- Options.h - The command line of partita-run --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_OPTIONS_H
#define PARTITA_TOOLS_PARTITA_RUN_OPTIONS_H

#include "runtime/io/Compare.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace partita::run {

/// What --train does.
struct TrainingOptions {
  bool isOn = false;
  std::vector<std::string> data, evalData; ///< NAME=FILE[:PART][,OPTION=VALUE]
  int64_t epochs = 1;
  int64_t steps = 0;              ///< instead of epochs; 0: none
  int64_t evalEvery = 0;          ///< steps; 0: at the end of each epoch
  int64_t reportEvery = 0;        ///< steps; 0: when it evaluates
  std::string outputs = "mean";   ///< final, sum, all, every:N
  int64_t outputsEvery = 0;       ///< N of every:N, 1 of all, 0 of others
  std::string order = "shuffled"; ///< in-order, drawn
  uint64_t seed = 0;
  std::string checkpoint;      ///< folder of checkpoints and logs
  int64_t checkpointEvery = 0; ///< steps; 0: after each epoch
  int keep = 3;                ///< checkpoints
  std::string keepBest;        ///< metric whose best checkpoint stays, too
  bool resume = false;
  bool allowChanges = false;
  std::string load;     ///< .safetensors with parameters to begin with
  std::string exportTo; ///< where to write the trained model
};

struct Options {
  TrainingOptions training;
  std::string artifact;
  /// The file to write. With an artifact, the times of its model are added to
  /// the file.
  std::string calibrate;
  double calibrateSeconds = 45;
  std::vector<std::string> inputs; ///< "name=file" or "file"
  /// The sizes of dimensions that choose one of several plans.
  std::vector<std::pair<std::string, int64_t>> dimensions;
  std::string output;
  std::string testData;
  std::string compare; ///< .npz with reference tensors
  runtime::Tolerances tolerances;
  std::string devices;   ///< as given, e.g. "cpu:2"; empty: the plan's
  std::string deviceMap; ///< with mpirun: the devices of each process
  int threads = 0;  ///< cores per device; 0: the cores divided by the devices
  int cpuLevel = 4; ///< use no code above this x86-64 level
  bool pin = true;
  bool strictNan = false; ///< keep NaN from the first step on
  bool graphs = true;     ///< launch units of GPUs as CUDA graphs
  double timeout = 60;
  bool benchmark = false;
  int warmup = 5;
  int runs = 20;
  double seconds = 0;
  double rate = 0;       ///< offered samples per second; 0: steps
  double batchDelay = 0; ///< ms that a sample may wait for others
  bool json = false;
  std::string profile;
  bool profileTable = false;
  int top = 60; ///< lines of its tables of modules and of instructions
  bool plan = false;
  bool trustWeights = false;

  /// Whether steps are measured, with made-up inputs for those that are not
  /// given.
  bool measures() const { return benchmark || !calibrate.empty(); }
  /// Whether the recorded events of every step count, and not only of the last
  /// one.
  bool wantsAllSteps() const { return profileTable || !calibrate.empty(); }
  bool wantsProfile() const { return !profile.empty() || wantsAllSteps(); }
};

/// Fills `options`. Returns -1 to go on, otherwise the exit status: 0 after
/// --help and --version, 1 after a message about what is wrong.
int parseOptions(int argc, char **argv, Options &options);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_OPTIONS_H
