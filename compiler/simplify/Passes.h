//===- Passes.h - Passes that simplify a model ------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SIMPLIFY_PASSES_H
#define PARTITA_COMPILER_SIMPLIFY_PASSES_H

#include "dialects/nn/NNDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <functional>
#include <memory>

namespace partita::simplify {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/simplify/Passes.h.inc"

/// Whether attention of q [B, H, M, D] and v [B, H, L, E] becomes one op.
/// `hasFactor`: a mask multiplies the scores.
using KeepsAttention = std::function<bool(
    mlir::RankedTensorType q, mlir::RankedTensorType v, bool hasFactor)>;

std::unique_ptr<mlir::Pass> createRaiseAttentionPass(KeepsAttention keeps);

/// Adds the passes that bring a module, as the importer makes it, to the form
/// that others look for. A model is differentiated after them: what follows
/// uses that nobody else needs a value.
void addCanonicalPasses(mlir::OpPassManager &pm);

/// Adds the passes that make a model faster. Afterwards every weight has a use,
/// images are channels-last, and ops that depend on weights only are separate
/// from those that depend on inputs. Without `keepsAttention` all attention
/// becomes one op.
void addOptimizePasses(mlir::OpPassManager &pm,
                       KeepsAttention keepsAttention = nullptr);

/// Adds both lists.
void addSimplifyPasses(mlir::OpPassManager &pm,
                       KeepsAttention keepsAttention = nullptr);

/// Registers the list as `--nn-simplify`.
void registerSimplifyPipeline();

} // namespace partita::simplify

#endif // PARTITA_COMPILER_SIMPLIFY_PASSES_H
