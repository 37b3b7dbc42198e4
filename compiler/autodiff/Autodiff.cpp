//===- Autodiff.cpp - The passes in order ---------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Passes.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace partita::autodiff {

void addAutodiffPasses(OpPassManager &pm, const AutodiffOptions &options) {
  // While parameters still have the names of the model.
  ChooseParametersPassOptions parameters;
  parameters.freeze.assign(options.freeze.begin(), options.freeze.end());
  parameters.trainOnly.assign(options.trainOnly.begin(),
                              options.trainOnly.end());
  pm.addPass(createChooseParametersPass(parameters));
  if (options.loss.empty())
    return;
  pm.addPass(
      createAddLossPass({options.loss, options.results == LossResults::parts,
                         options.results == LossResults::evaluation}));
  if (options.results == LossResults::evaluation)
    return;
  pm.addPass(createExpandAttentionPass());
  pm.addPass(createExpandRecurrentPass({options.inputs, /*doubles=*/false}));
  pm.addPass(createDifferentiatePass({options.inputs, options.mark}));
  // Parts that several derivatives need.
  pm.addPass(createCSEPass());
}

} // namespace partita::autodiff
