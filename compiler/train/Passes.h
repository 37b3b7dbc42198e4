//===- Passes.h - Passes that make a step of training -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loss and its gradients (compiler/autodiff) become a step that writes
// states:
//
//   --nn-add-optimizer       sums over micro-batches, and the update
//   --nn-sum-gradients       the same sums, as results
//   --nn-choose-initial-values   what states are drawn from at the beginning
//   --nn-form-accumulators   these sums as each micro-batch adds to them
//   --nn-scatter-upon-sums   rows that are added where the sums lie
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_TRAIN_PASSES_H
#define PARTITA_COMPILER_TRAIN_PASSES_H

#include "dialects/dist/DistDialect.h"
#include "dialects/nn/NNDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>
#include <vector>

namespace partita::train {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/train/Passes.h.inc"

/// How a model is trained. See the options of the passes.
struct TrainOptions {
  std::string optimizer; ///< empty: it is not trained
  std::vector<std::string> groups;
  double clipNorm = 0;
  int64_t microBatches = 1;
  std::vector<std::string> scaledInputs; ///< must be inputs of the model
  /// Globs of normalizations and dropouts that compute as at inference.
  std::vector<std::string> evalMode;
  std::vector<std::string> init; ///< GLOB=KIND[,KEY=VALUE...]
  std::string recompute;         ///< none, standard or full; empty: none
  std::vector<std::string> recomputeNodes; ///< globs
  /// What a step does whose loss or gradients are not finite: stop or skip.
  /// Empty: nobody has said it, and nothing keeps it from changing states.
  std::string onNonfinite;
  std::string mixedPrecision; ///< the type of products; empty: the model's
  bool optimizerOnHost = false; ///< what the optimizer keeps is not on devices
  /// All of it, and what only those who run the artifact need, as JSON.
  std::string description;
};

/// Makes weights states, where they are and where they are read.
void makeStates(mlir::ModuleOp module, llvm::ArrayRef<nn::WeightOp> weights);

} // namespace partita::train

#endif // PARTITA_COMPILER_TRAIN_PASSES_H
