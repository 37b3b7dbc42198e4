//===- Passes.td - Passes that run phases inside -------------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PASSES_PASSES_TD
#define PARTITA_COMPILER_PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

def DistPriceAlonePass : PassBase<"dist-price-alone", "::partita::ModelPass"> {
  let summary = "Predicts what one device would take for the whole model";
  let description = [{
    Sets `dist.alone_ns`, by a copy of the model for which it is decided what is
    computed together as on one device. The plan says by it how many times as
    fast all devices are. Does nothing where nothing will be cut or joined:
    --dist-assign-stages has the whole model there. Nor does it where replicas
    share a batch already: then there is no model of one device.

    With `dist.axes = [#dist.axis<"tensor" = 2>]`:

    ```mlir
    func.func @main(...) attributes {dist.axes = ...}
    // becomes
    func.func @main(...) attributes {dist.alone_ns = array<f64: 2.6e+04, 0.0>, dist.axes = ...}
    ```
  }];
  let options = [
    Option<"winograd", "winograd", "bool", /*default=*/"true", "as --fuse-clusters has it">,
    Option<"libraryCalls", "library-calls", "bool", /*default=*/"true", "as --fuse-clusters has it">,
    Option<"reference", "reference", "bool", /*default=*/"false", "as --fuse-clusters has it">
  ];
  let dependentDialects = ["::partita::dist::DistDialect", "::partita::nn::NNDialect", "::partita::plan::PlanDialect"];
}

#endif // PARTITA_COMPILER_PASSES_PASSES_TD
