//===- ReadModel.cpp - A model, from whatever file ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/ReadModel.h"

#include "compiler/autodiff/Passes.h"
#include "compiler/driver/ReadModule.h"
#include "dialects/nn/NNDialect.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace partita::driver {

FailureOr<OwningOpRef<ModuleOp>>
readModel(MLIRContext &context, const import::ImportOptions &options) {
  auto module = isModuleFile(options.modelPath)
                    ? readModule(context, options)
                    : import::importOnnxModel(context, options);
  if (failed(module) ||
      !(*module)
           ->walk([](nn::VariableOp) { return WalkResult::interrupt(); })
           .wasInterrupted())
    return module;
  PassManager pm(&context, ModuleOp::getOperationName());
  pm.addPass(autodiff::createResolveGradientsPass());
  if (failed(pm.run(**module)))
    return failure();
  return module;
}

} // namespace partita::driver
