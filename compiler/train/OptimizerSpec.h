//===- OptimizerSpec.h - What a person says of an optimizer -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   adamw,learning_rate=0.001,weight_decay=0.01      for all parameters
//   *.bias|*norm*,weight_decay=0                     for a group of them
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_TRAIN_OPTIMIZERSPEC_H
#define PARTITA_COMPILER_TRAIN_OPTIMIZERSPEC_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace partita::train {

enum class OptimizerKind { sgd, adam, adamw, adagrad };

/// "sgd", "adam", "adamw", "adagrad".
llvm::StringRef getName(OptimizerKind kind);

/// Settings with the names, defaults and meanings of PyTorch's.
struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::sgd;
  double learningRate = 0.001;
  double weightDecay = 0;
  double momentum = 0;               ///< sgd
  double dampening = 0;              ///< sgd
  bool nesterov = false;             ///< sgd
  double beta1 = 0.9, beta2 = 0.999; ///< adam, adamw
  double eps = 1e-8;                 ///< adam, adamw, adagrad
  double learningRateDecay = 0;      ///< adagrad
  double initialAccumulator = 0;     ///< adagrad
};

/// Parameters with settings of their own.
struct ParameterGroup {
  std::vector<std::string> globs;
  OptimizerSpec settings;
};

/// KIND[,KEY=VALUE...], with betas=B1:B2. The error says what is wrong, and
/// what could stand there.
llvm::Expected<OptimizerSpec> parseOptimizer(llvm::StringRef text);

/// GLOB[|GLOB...][,KEY=VALUE...]: the settings that are not said are those of
/// `optimizer`. A semicolon may stand for a comma, as lists of options need it.
llvm::Expected<ParameterGroup> parseGroup(llvm::StringRef text,
                                          const OptimizerSpec &optimizer);

} // namespace partita::train

#endif // PARTITA_COMPILER_TRAIN_OPTIMIZERSPEC_H
