//===- TrainingMode.h - Layers in training mode -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A batch normalization has the statistics of the micro-batch while a model
// learns, and running statistics when it is evaluated. A dropout drops elements
// while a model learns. Models are mostly exported for inference, whatever they
// are for. So the plan decides, not the node.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_TRAINING_TRAININGMODE_H
#define PARTITA_COMPILER_IMPORT_TRAINING_TRAININGMODE_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace partita::import {

/// How layers compute that do it otherwise in training.
enum class TrainingMode {
  asWritten, ///< as the node says
  learn,     ///< in training; running statistics are states
  evaluate   ///< at inference; running statistics are states
};

struct TrainingOptions {
  TrainingMode mode = TrainingMode::asWritten;
  /// Micro-batches of a step.
  int64_t microBatches = 1;
  /// Globs of nodes that compute as at inference, in training, too.
  std::vector<std::string> evalMode;
};

/// Inputs of the model's function that layers ask for in training. The first
/// counts all samples of a training, [samples of a micro-batch] of i64. The
/// second is one number of i64 for a step.
inline constexpr llvm::StringLiteral kSampleNumberInput = "sample_number";
inline constexpr llvm::StringLiteral kSeedInput = "seed";

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_TRAINING_TRAININGMODE_H
