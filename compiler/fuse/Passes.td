//===- Passes.td - Passes that make clusters -----------------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_FUSE_PASSES_TD
#define PARTITA_COMPILER_FUSE_PASSES_TD

include "mlir/Pass/PassBase.td"

def FuseClustersPass : Pass<"fuse-clusters", "::mlir::ModuleOp"> {
  let summary = "decide which ops of the model are computed together";
  let description = [{
    Gives ops that become one kernel or one library call the same number in
    `nn.cluster`. Only this pass decides whether a cluster is a call; it asks
    the backend. An op without a number becomes a kernel alone. Additions that
    may be made in the bytes of an operand get `nn.accumulate`. Convolutions
    that are faster by Winograd's method get `nn.winograd`. The pass works on
    the whole model, before it is cut, so that every partition computes with the
    same kernels. Clusters are convex: no path leaves one and comes back.

    If stages have a target of their own (`plan.target`), the pass decides anew
    in these only, by the backend of that target. Functions with
    `dist.reproducible` have no `nn.winograd`: whether that method is faster
    depends on how tensors are cut.

    ```mlir
    %0 = nn.conv %x, %w ...
    %1 = nn.relu %0 : tensor<1x4x8x8xf32>
    ```
    becomes
    ```mlir
    %0 = nn.conv %x, %w ... {nn.cluster = #nn.cluster<0, call>}
    %1 = nn.relu %0 {nn.cluster = #nn.cluster<0, call>} : tensor<1x4x8x8xf32>
    ```
  }];
  let dependentDialects = ["::partita::nn::NNDialect", "::partita::plan::PlanDialect"];
  let options = [
    Option<"winograd", "winograd", "bool", /*default=*/"true",
      "compute large convolutions of 3x3 windows by Winograd's method">,
    Option<"libraryCalls", "library-calls", "bool", /*default=*/"true",
      "let a library compute what loops can compute, too">,
    Option<"reference", "reference", "bool", /*default=*/"false",
      "compute each op by itself, and by no library call where loops can">,
    Option<"place", "place", "::partita::fuse::FusePlace", /*default=*/"::partita::fuse::FusePlace::any",
      "of which ops it decides",
      [{::llvm::cl::values(
        clEnumValN(::partita::fuse::FusePlace::any, "any", "of all"),
        clEnumValN(::partita::fuse::FusePlace::before_cuts, "before-cuts", "of functions with `dist.reproducible`: no number may depend on how tensors are cut"),
        clEnumValN(::partita::fuse::FusePlace::behind_cuts, "behind-cuts", "of other functions"),
        clEnumValN(::partita::fuse::FusePlace::own_targets, "own-targets", "of stages with a target of their own"))}]>];
}

def FormClustersPass : Pass<"form-clusters", "::mlir::ModuleOp"> {
  let summary = "outline ops with the same cluster number into nn.cluster";
  let description = [{
    Works on each block by itself. Ops with the same `nn.cluster` attribute
    become one `nn.cluster` op of the attribute's kind. Each op without the
    attribute becomes a kernel of its own. Constants go inside. Parameters stay
    outside, and so do reshapes that only give the same bytes another name. A
    library call gets copies of the states that it reads, since it may pack
    weights when the model is loaded. Attributes of other dialects on one of the
    ops (`dist.price`) go to the cluster. A cluster that adds to a sum over
    micro-batches (`dist.sums`) comes as soon as what it reads is there, and one
    that computes something again (`dist.recomputed`) just before its first
    reader.
  }];
  let dependentDialects = ["::partita::nn::NNDialect"];
}

#endif // PARTITA_COMPILER_FUSE_PASSES_TD
