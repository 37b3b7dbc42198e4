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

#include <memory>
#include <string>

namespace partita::simplify {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/simplify/Passes.h.inc"

/// Adds the passes that bring a module, as the importer makes it, to the form
/// that others look for. A model is differentiated after them: what follows
/// uses that nobody else needs a value.
void addCanonicalPasses(mlir::OpPassManager &pm);

/// Which calls the backends of a model have.
struct OptimizeOptions {
  /// Libraries compute what loops can, too.
  bool libraryCalls = true;
  /// Attention is a call, where a backend has one only if somebody asks for it.
  bool attentionCalls = false;
  /// The type of products in models of f32: bf16, f16, or empty for f32.
  std::string mixedPrecision;
};

/// Adds the pass that changes the type of products, if there is one.
void addMixedPrecision(mlir::OpPassManager &pm, const std::string &type);

/// Adds the passes that make a model faster. Afterwards every weight has a use,
/// images are channels-last, and ops that depend on weights only are separate
/// from those that depend on inputs.
void addOptimizePasses(mlir::OpPassManager &pm,
                       const OptimizeOptions &options = {});

/// Adds both lists.
void addSimplifyPasses(mlir::OpPassManager &pm);

/// Registers the list as `--nn-simplify`.
void registerSimplifyPipeline();

} // namespace partita::simplify

#endif // PARTITA_COMPILER_SIMPLIFY_PASSES_H
