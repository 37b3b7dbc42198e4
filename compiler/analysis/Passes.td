//===- Passes.td - Passes that show what analyses find -------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_ANALYSIS_PASSES_TD
#define PARTITA_COMPILER_ANALYSIS_PASSES_TD

include "mlir/Pass/PassBase.td"

def PrintRatesPass : Pass<"print-rates", "::mlir::ModuleOp"> {
  let summary = "show how often each value is computed";
  let description = [{
    Writes the rate of every op that has results as an attribute. People and
    tests read it; no other pass does.

    ```mlir
    %w = nn.parameter @w : tensor<8xf32>
    %0 = nn.mul %x, %w : tensor<8xf32>
    // becomes
    %w = nn.parameter @w {rate = "load"} : tensor<8xf32>
    %0 = nn.mul %x, %w {rate = "micro-batch"} : tensor<8xf32>
    ```
  }];
}

#endif // PARTITA_COMPILER_ANALYSIS_PASSES_TD
