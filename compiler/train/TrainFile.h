//===- TrainFile.h - How a model is trained ---------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   loss: {kind: cross_entropy, output: logits, labels: label}
//   optimizer: {kind: adamw, learning_rate: 0.001, weight_decay: 0.01}
//   groups: [{parameters: ["*.bias"], weight_decay: 0}]
//   schedule: {kind: cosine, warmup: 100, steps: 2000, final: 3.0e-5}
//   clip_norm: 1.0
//   micro_batches: 10
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_TRAIN_TRAINFILE_H
#define PARTITA_COMPILER_TRAIN_TRAINFILE_H

#include "compiler/autodiff/Passes.h"
#include "compiler/train/Passes.h"

#include "llvm/Support/Error.h"

#include <map>
#include <optional>

namespace partita::train {

/// How the learning rate changes from step to step. `steps` counts those from
/// the first one on, those of the warm-up included.
struct RateSchedule {
  std::string kind = "constant"; ///< step, linear, cosine, wsd
  int64_t warmup = 0;            ///< steps in which it grows from 0
  int64_t steps = 0;             ///< after so many it has its last value
  double final = 0;              ///< that value; of wsd and linear too
  int64_t every = 0;             ///< step: after so many steps it is `factor`
  double factor = 0.1;           ///< times as large
  int64_t decay = 0;             ///< wsd: the last steps, in which it falls
};

/// An integer input becomes (x / divide - mean) / std.
struct InputScale {
  double divide = 1, mean = 0, std = 1;
};

/// A file, and flags that say the same.
struct TrainSettings {
  std::optional<std::string> loss; ///< as --loss says it
  std::vector<std::string> freeze, trainOnly, evalMode;
  std::vector<std::string> init;        ///< GLOB=KIND[,KEY=VALUE...]
  std::optional<std::string> optimizer; ///< KIND[,KEY=VALUE...]
  std::vector<std::string> groups;      ///< GLOB[|GLOB...][,KEY=VALUE...]
  std::optional<RateSchedule> schedule;
  std::optional<double> clipNorm;
  std::optional<int64_t> microBatches;
  std::optional<std::string> recompute; ///< none, standard or full
  std::vector<std::string> recomputeNodes;
  std::optional<std::string> optimizerState; ///< device or host
  std::optional<std::string> onNonfinite;    ///< stop or skip
  std::optional<std::string> mixedPrecision; ///< bf16
  bool sums = false; ///< the loss is a sum, unless it says another thing
  std::map<std::string, InputScale> scale;
};

/// Reads a file of settings. The error has the file, the line and the column,
/// and what could stand there.
llvm::Expected<TrainSettings> readTrainFile(llvm::StringRef path);

/// The same of a text. Errors have line and column.
llvm::Expected<TrainSettings> parseTrainFile(llvm::StringRef text);

/// KIND[,KEY=VALUE...], e.g. cosine,warmup=100,steps=2000.
llvm::Expected<RateSchedule> parseSchedule(llvm::StringRef text);

/// What `settings` says, for the compiler. A setting that stands in no file and
/// on no command line has its default. Fails if the optimizer is wrong.
llvm::Error apply(const TrainSettings &settings,
                  autodiff::AutodiffOptions &autodiff, TrainOptions &train);

} // namespace partita::train

#endif // PARTITA_COMPILER_TRAIN_TRAINFILE_H
