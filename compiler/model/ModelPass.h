//===- ModelPass.h - Passes on the model's function -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_MODEL_MODELPASS_H
#define PARTITA_COMPILER_MODEL_MODELPASS_H

#include "compiler/model/ModelFunction.h"

#include "mlir/Pass/Pass.h"

namespace partita {

/// A pass on a module that has one function, the model's. It fails where `run`
/// does, and, with a diagnostic, on a module without such a function.
class ModelPass : public mlir::OperationPass<mlir::ModuleOp> {
protected:
  using OperationPass::OperationPass;

  virtual mlir::LogicalResult run(mlir::func::FuncOp function) = 0;

private:
  void runOnOperation() final {
    mlir::FailureOr<mlir::func::FuncOp> function =
        getModelFunction(getOperation());
    if (failed(function) || failed(run(*function)))
      signalPassFailure();
  }
};

} // namespace partita

#endif // PARTITA_COMPILER_MODEL_MODELPASS_H
