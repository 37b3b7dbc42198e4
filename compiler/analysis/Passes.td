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

def ProveSamplesPass : Pass<"prove-samples", "::mlir::ModuleOp"> {
  let summary = "prove that samples do not depend on each other";
  let description = [{
    Follows samples from the arguments with `nn.batch_axis` through the factors
    of the ops (`ShardableOpInterface`): where they pass through each, results
    get the axis along which they lie. Otherwise no argument and no result keeps
    one, the module gets `nn.mixes`, and a remark names the first op that does
    not keep samples apart.

    ```mlir
    func.func @main(%x: tensor<4x8xf32> {nn.batch_axis = 0 : i64}) -> tensor<8x4xf32> {
      %0 = nn.transpose %x [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
      return %0 : tensor<8x4xf32>
    }
    // becomes
    func.func @main(%x: tensor<4x8xf32> {nn.batch_axis = 0 : i64}) -> (tensor<8x4xf32> {nn.batch_axis = 1 : i64})
    ```
  }];
}

#endif // PARTITA_COMPILER_ANALYSIS_PASSES_TD
