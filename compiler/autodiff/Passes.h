//===- Passes.h - Passes that differentiate a model -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model becomes its loss and the gradients of its parameters, on global
// shapes, before anything is cut or fused:
//
//   --nn-resolve-gradients   gradients that the model itself asks for
//   --nn-choose-parameters   which weights are trained
//   --nn-add-loss            the loss in the place of the outputs
//   --nn-expand-attention    what has a derivative only in parts
//   --nn-differentiate       the gradients as further results
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_AUTODIFF_PASSES_H
#define PARTITA_COMPILER_AUTODIFF_PASSES_H

#include "dialects/nn/NNDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <memory>
#include <string>
#include <vector>

namespace partita::autodiff {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/autodiff/Passes.h.inc"

/// What a loss makes of the model's results.
enum class LossResults {
  whole,     ///< they become the loss and its gradients
  parts,     ///< the same, and the loss is a sum and a count
  evaluation ///< they become this sum and count, and the labels are counted
             ///< that are predicted; there are no gradients
};

struct AutodiffOptions {
  /// KIND:OUTPUT[:INPUT][,OPTION=VALUE...], see LossSpec.h.
  std::string loss;
  /// Globs of parameters that are not trained, and of the only ones that are.
  std::vector<std::string> freeze, trainOnly;
  /// Gradients of the inputs, too.
  bool inputs = false;
  LossResults results = LossResults::whole;
};

/// What --nn-expand-attention does to an op: products and a softmax are in its
/// place.
void expand(nn::AttentionOp op);
/// What --nn-expand-recurrent does: the steps of the layer are in its place.
void expand(nn::RecurrentOp op);

} // namespace partita::autodiff

#endif // PARTITA_COMPILER_AUTODIFF_PASSES_H
