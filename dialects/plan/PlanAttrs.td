//===- PlanAttrs.td - How a cluster is computed --------------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_PLAN_PLANATTRS_TD
#define PARTITA_DIALECTS_PLAN_PLANATTRS_TD

include "dialects/nn/NNInterfaces.td"
include "dialects/plan/PlanBase.td"

class Plan_Attr<string name, string attrMnemonic, list<Trait> traits = []> : AttrDef<Plan_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Plan_KernelAttr : Plan_Attr<"Kernel", "kernel", [DeclareAttrInterfaceMethods<NN_LoweringAttrInterface>]> {
  let summary = "a compiled kernel: its symbol in the objects, and its parallel loop";
  let description = [{
    `in_place` lists pairs (operand, result) that may share their bytes. The
    kernel reads each element of such an operand only before it writes the same
    element of the result, in the same iteration of the parallel loop.

    A kernel for GPUs has a `launch` in the place of a parallel loop: the blocks
    of its grid, and the threads of a block. Its extent is 0.

    ```mlir
    #plan.kernel<"k3", extent = 64, grain = 8, in_place = [0, 0]>
    #plan.kernel<"k4", extent = 0, grain = 1, launch = [128, 256]>
    ```
  }];
  let parameters = (ins
    StringRefParameter<"symbol in the objects">:$name,
    "int64_t":$extent, "int64_t":$grain,
    OptionalArrayRefParameter<"int64_t">:$in_place,
    OptionalArrayRefParameter<"int64_t">:$launch);
  let hasCustomAssemblyFormat = 1;
}

def Plan_CutAttr : Plan_Attr<"Cut", "cut"> {
  let summary = "how a dimension of a state is cut over devices";
  let description = [{
    The dimension consists of `blocks` equal blocks. Of each block, the devices
    along `axes`, which are numbers of the module's axes, have one part after
    another. The last parts may go beyond the end of the block; there they are
    0.

    ```mlir
    #plan.cut<dim = 0, blocks = 1, axes = [0]>
    ```
  }];
  let parameters = (ins "int64_t":$dim, "int64_t":$blocks, ArrayRefParameter<"int64_t">:$axes);
  let assemblyFormat = "`<` `dim` `=` $dim `,` `blocks` `=` $blocks `,` `axes` `=` `[` $axes `]` `>`";
}

def Plan_CutsAttr : TypedArrayAttrBase<Plan_CutAttr, "how a state is cut, by dimension">;

def Plan_ViewAttr : Plan_Attr<"View", "view"> {
  let summary = "an operand or result of a cluster under a shape and strides";
  let description = [{
    `value` is a position among the cluster's operands, followed by its results.
    `strides` and `offset` are in elements. A stride of 0 repeats an element.

    ```mlir
    #plan.view<0 shape [4, 16] strides [16, 1] offset 32>
    ```
  }];
  let parameters = (ins "int64_t":$value,
    OptionalArrayRefParameter<"int64_t">:$shape, OptionalArrayRefParameter<"int64_t">:$strides,
    DefaultValuedParameter<"int64_t", "0">:$offset);
  let hasCustomAssemblyFormat = 1;
}

def Plan_PostOpAttr : Plan_Attr<"PostOp", "post_op"> {
  let summary = "one step of a library call's epilogue";
  let parameters = (ins "::partita::plan::PostOpKind":$kind,
    APFloatParameter<"">:$alpha_float, APFloatParameter<"">:$beta_float,
    OptionalParameter<"::partita::plan::ViewAttr">:$view);
  let hasCustomAssemblyFormat = 1;
  let builders = [AttrBuilder<(ins "PostOpKind":$kind, CArg<"double", "0.0">:$alpha,
      CArg<"double", "0.0">:$beta, CArg<"ViewAttr", "{}">:$view), [{
    return $_get($_ctxt, kind, ::llvm::APFloat(alpha), ::llvm::APFloat(beta), view);
  }]>];
  let extraClassDeclaration = [{
    double getAlpha() const { return getAlphaFloat().convertToDouble(); }
    double getBeta() const { return getBetaFloat().convertToDouble(); }
  }];
}

def Plan_GateFunctionAttr : Plan_Attr<"GateFunction", "gate"> {
  let summary = "the function of a gate, with its parameters";
  let parameters = (ins "::partita::plan::GateFunctionKind":$kind,
    APFloatParameter<"">:$alpha_float, APFloatParameter<"">:$beta_float);
  let hasCustomAssemblyFormat = 1;
  let builders = [AttrBuilder<(ins "GateFunctionKind":$kind, CArg<"double", "0.0">:$alpha, CArg<"double", "0.0">:$beta), [{
    return $_get($_ctxt, kind, ::llvm::APFloat(alpha), ::llvm::APFloat(beta));
  }]>];
  let extraClassDeclaration = [{
    double getAlpha() const { return getAlphaFloat().convertToDouble(); }
    double getBeta() const { return getBetaFloat().convertToDouble(); }
  }];
}

def Plan_RecurrentAttr : Plan_Attr<"Recurrent", "recurrent"> {
  let summary = "the parameters of a call of kind recurrent; they are those of `Recurrent` in runtime/abi/plan.fbs";
  let description = [{
    ```mlir
    #plan.recurrent<lstm, reversed = [0, 1], functions = [#plan.gate<logistic>, ...], initial = #plan.view<2 shape [2, 1, 8] strides [8, 8, 1]>>
    ```
  }];
  let parameters = (ins "::partita::plan::Cell":$cell,
    OptionalArrayRefParameter<"int64_t">:$reversed, DefaultValuedParameter<"bool", "false">:$coupled,
    APFloatParameter<"">:$clip_float,
    OptionalArrayRefParameter<"::partita::plan::GateFunctionAttr">:$functions,
    OptionalParameter<"::partita::plan::ViewAttr">:$lengths, OptionalParameter<"::partita::plan::ViewAttr">:$initial,
    OptionalParameter<"::partita::plan::ViewAttr">:$initial_cell, OptionalParameter<"::partita::plan::ViewAttr">:$peepholes,
    OptionalParameter<"::partita::plan::ViewAttr">:$hidden_bias);
  let hasCustomAssemblyFormat = 1;
  let builders = [AttrBuilder<(ins "Cell":$cell, "::llvm::ArrayRef<int64_t>":$reversed, "bool":$coupled, "double":$clip,
      "::llvm::ArrayRef<GateFunctionAttr>":$functions, "ViewAttr":$lengths, "ViewAttr":$initial,
      "ViewAttr":$initial_cell, "ViewAttr":$peepholes, "ViewAttr":$hidden_bias), [{
    return $_get($_ctxt, cell, reversed, coupled, ::llvm::APFloat(clip), functions, lengths, initial, initial_cell,
                 peepholes, hidden_bias);
  }]>];
  let extraClassDeclaration = [{
    double getClip() const { return getClipFloat().convertToDouble(); }
    /// The optional views, null where one is absent.
    ::llvm::SmallVector<ViewAttr, 5> getViews() const {
      return {getLengths(), getInitial(), getInitialCell(), getPeepholes(), getHiddenBias()};
    }
  }];
}

def Plan_CallAttr : Plan_Attr<"Call", "call", [DeclareAttrInterfaceMethods<NN_LoweringAttrInterface>]> {
  let summary = "a library call; its parameters are those of `LibraryCall` in runtime/abi/plan.fbs";
  let description = [{
    Printed as `#plan.call<kind, key = value, ...>`. Keys that have their
    default value are left out.

    ```mlir
    #plan.call<dot, operands = [#plan.view<0 shape [4, 16] strides [16, 1]>, ...], post_ops = [#plan.post_op<relu>]>
    ```
  }];
  let parameters = (ins "::partita::plan::CallKind":$kind,
    ArrayRefParameter<"::partita::plan::ViewAttr">:$operands,
    OptionalParameter<"::partita::plan::ViewAttr">:$bias,
    OptionalParameter<"::partita::plan::ViewAttr">:$mask_mul,
    OptionalParameter<"::partita::plan::ViewAttr">:$mask_add,
    OptionalArrayRefParameter<"int64_t">:$strides, OptionalArrayRefParameter<"int64_t">:$dilations,
    OptionalArrayRefParameter<"int64_t">:$pads_low, OptionalArrayRefParameter<"int64_t">:$pads_high,
    OptionalArrayRefParameter<"int64_t">:$window,
    DefaultValuedParameter<"int64_t", "1">:$groups, DefaultValuedParameter<"bool", "false">:$include_pad,
    APFloatParameter<"">:$scale_float,
    OptionalArrayRefParameter<"::partita::plan::PostOpAttr">:$post_ops,
    OptionalParameter<"::partita::plan::RecurrentAttr">:$recurrent,
    DefaultValuedParameter<"bool", "false">:$winograd,
    DefaultValuedParameter<"::partita::plan::Combine", "::partita::plan::Combine::replace">:$combine,
    DefaultValuedParameter<"bool", "false">:$largest);
  let hasCustomAssemblyFormat = 1;
  let builders = [AttrBuilder<(ins "CallKind":$kind, "::llvm::ArrayRef<ViewAttr>":$operands,
      "ViewAttr":$bias, "ViewAttr":$mask_mul, "ViewAttr":$mask_add,
      "::llvm::ArrayRef<int64_t>":$strides, "::llvm::ArrayRef<int64_t>":$dilations,
      "::llvm::ArrayRef<int64_t>":$pads_low, "::llvm::ArrayRef<int64_t>":$pads_high,
      "::llvm::ArrayRef<int64_t>":$window, "int64_t":$groups, "bool":$include_pad, "double":$scale,
      "::llvm::ArrayRef<PostOpAttr>":$post_ops, CArg<"RecurrentAttr", "{}">:$recurrent,
      CArg<"bool", "false">:$winograd, CArg<"Combine", "Combine::replace">:$combine, CArg<"bool", "false">:$largest), [{
    return $_get($_ctxt, kind, operands, bias, mask_mul, mask_add, strides, dilations, pads_low,
                 pads_high, window, groups, include_pad, ::llvm::APFloat(scale), post_ops, recurrent,
                 winograd, combine, largest);
  }]>];
  let extraClassDeclaration = [{
    double getScale() const { return getScaleFloat().convertToDouble(); }
  }];
}

#endif // PARTITA_DIALECTS_PLAN_PLANATTRS_TD
