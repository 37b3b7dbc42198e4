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

//===----------------------------------------------------------------------===//
// Parameters, with their text
//===----------------------------------------------------------------------===//

/// `[1, 2]`, or `[#plan.view<...>, ...]`, where `<...>` is read, too
class Plan_List<string type> : OptionalArrayRefParameter<type> {
  let parser = "::partita::plan::parseList<" # type # ">($_parser)";
  let printer = "::partita::plan::printList<" # type # ">($_printer, $_self)";
}
def Plan_Ints : Plan_List<"int64_t">;
/// The same, and never left out.
def Plan_Sizes : ArrayRefParameter<"int64_t"> {
  let parser = Plan_Ints.parser;
  let printer = Plan_Ints.printer;
}
/// `true`; absent: false
def Plan_Flag : DefaultValuedParameter<"bool", "false"> {
  let parser = "::partita::plan::parseFlag($_parser)";
  let printer = "$_printer << ($_self ? \"true\" : \"false\")";
}
/// `1.500000e+00`, or its bits where that has no short form
class Plan_Number<string standard = "0"> : DefaultValuedParameter<"::partita::plan::Number", "::partita::plan::Number(" # standard # ")"> {
  let parser = "::partita::plan::parseNumber($_parser)";
  let printer = "$_printer.printFloat(::llvm::APFloat($_self.value))";
}
class Plan_Int<string standard> : DefaultValuedParameter<"int64_t", standard>;
/// The name of a value of an enum of runtime/abi/plan.fbs.
class Plan_Word<string type, string what> : AttrParameter<"::partita::plan::" # type, ""> {
  let parser = "::partita::plan::parseWord<::partita::plan::" # type # ">($_parser, \"" # what # "\", ::partita::plan::symbolize" # type # ")";
  let printer = "$_printer << ::partita::plan::stringify" # type # "($_self)";
}
/// `#plan.view<...>`, if it is there; `<...>` is read, too
def Plan_View : OptionalParameter<"::partita::plan::ViewAttr"> {
  let printer = "$_printer << ::mlir::Attribute($_self)";
}
/// `#plan.conv<...>` and the like, if it is there
def Plan_Details : OptionalParameter<"::mlir::Attribute"> {
  let printer = "$_printer << $_self";
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

/// A value of an enum of runtime/abi/plan.fbs, whose getter returns that value.
class Plan_Enum<string type, string attrMnemonic, string text> : Plan_Attr<type, attrMnemonic> {
  let summary = text;
  let parameters = (ins Plan_Word<type, attrMnemonic>:$value);
  let assemblyFormat = "$value";
  let returnType = "::partita::plan::" # type;
  let convertFromStorage = "$_self.getValue()";
  let constBuilderCall = "::partita::plan::" # type # "Attr::get($_builder.getContext(), $0)";
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
    "int64_t":$extent, "int64_t":$grain, Plan_Ints:$in_place, Plan_Ints:$launch);
  let assemblyFormat = "`<` $name `,` struct($extent, $grain, $in_place, $launch) `>`";
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
  let parameters = (ins "int64_t":$value, Plan_Sizes:$shape, Plan_Sizes:$strides, Plan_Int<"0">:$offset);
  let assemblyFormat = "`<` $value `shape` $shape `strides` $strides (`offset` $offset^)? `>`";
}

def Plan_PostOpAttr : Plan_Attr<"PostOp", "post_op"> {
  let summary = "one step of a library call's epilogue";
  let description = [{
    ```mlir
    #plan.post_op<clip, alpha = -1.0, beta = 6.0>
    #plan.post_op<add, view = #plan.view<2 shape [1, 8] strides [0, 1]>>
    ```
  }];
  let parameters = (ins Plan_Word<"PostOpKind", "post-op">:$kind, Plan_Number<>:$alpha, Plan_Number<>:$beta, Plan_View:$view);
  let assemblyFormat = "`<` $kind (`,` struct($alpha, $beta, $view)^)? `>`";
}

def Plan_GateFunctionAttr : Plan_Attr<"GateFunction", "gate"> {
  let summary = "the function of a gate, with its parameters";
  let parameters = (ins Plan_Word<"GateFunctionKind", "gate function">:$kind, Plan_Number<>:$alpha, Plan_Number<>:$beta);
  let assemblyFormat = "`<` $kind (`,` struct($alpha, $beta)^)? `>`";
}

//===----------------------------------------------------------------------===//
// Library calls
//===----------------------------------------------------------------------===//

def Plan_ConvAttr : Plan_Attr<"Conv", "conv"> {
  let summary = "what a convolution needs, or one of its derivatives";
  let description = [{
    `strides`, `dilations` (1 means dense) and the pads are by spatial
    dimension. `winograd`: by Winograd's method, if the library has it and the
    memory of the plan suffices.

    ```mlir
    #plan.conv<strides = [2, 2], dilations = [1, 1], pads_low = [1, 1], pads_high = [0, 0], groups = 4>
    ```
  }];
  let parameters = (ins Plan_Ints:$strides, Plan_Ints:$dilations, Plan_Ints:$pads_low, Plan_Ints:$pads_high,
    Plan_Int<"1">:$groups, Plan_Flag:$winograd, Plan_View:$bias);
  let assemblyFormat = "(`<` struct($strides, $dilations, $pads_low, $pads_high, $groups, $winograd, $bias)^ `>`)?";
}

def Plan_PoolAttr : Plan_Attr<"Pool", "pool"> {
  let summary = "the window of a pool";
  let description = [{
    `include_pad`: the divisor of an average counts pads, too.

    ```mlir
    #plan.pool<strides = [2, 2], dilations = [1, 1], pads_low = [0, 1], pads_high = [1, 0], window = [3, 3], include_pad = true>
    ```
  }];
  let parameters = (ins Plan_Ints:$strides, Plan_Ints:$dilations, Plan_Ints:$pads_low, Plan_Ints:$pads_high,
    Plan_Ints:$window, Plan_Flag:$include_pad);
  let assemblyFormat = "(`<` struct($strides, $dilations, $pads_low, $pads_high, $window, $include_pad)^ `>`)?";
}

def Plan_AttentionAttr : Plan_Attr<"Attention", "attention"> {
  let summary = "what multiplies the scores of an attention, and what is added to them";
  let description = [{
    ```mlir
    #plan.attention<mask_add = #plan.view<3 shape [1, 1, 6, 5] strides [0, 0, 5, 1]>, scale = 1.250000e-01>
    ```
  }];
  let parameters = (ins Plan_View:$mask_mul, Plan_View:$mask_add, Plan_Number<"1">:$scale);
  let assemblyFormat = "(`<` struct($mask_mul, $mask_add, $scale)^ `>`)?";
}

def Plan_RecurrentAttr : Plan_Attr<"Recurrent", "recurrent"> {
  let summary = "a loop over steps; its parameters are those of `Recurrent` in runtime/abi/plan.fbs";
  let description = [{
    ```mlir
    #plan.recurrent<lstm, reversed = [0, 1], functions = [#plan.gate<logistic>, ...], initial = #plan.view<2 shape [2, 1, 8] strides [8, 8, 1]>>
    ```
  }];
  let parameters = (ins Plan_Word<"Cell", "cell">:$cell, Plan_Ints:$reversed, Plan_Flag:$coupled, Plan_Number<>:$clip,
    Plan_List<"::partita::plan::GateFunctionAttr">:$functions, Plan_View:$lengths, Plan_View:$initial,
    Plan_View:$initial_cell, Plan_View:$peepholes, Plan_View:$hidden_bias);
  let assemblyFormat = [{
    `<` $cell (`,` struct($reversed, $coupled, $clip, $functions, $lengths, $initial, $initial_cell, $peepholes,
                         $hidden_bias)^)? `>`
  }];
}

def Plan_TopKAttr : Plan_Attr<"TopK", "top_k"> {
  let summary = "which elements of a row are taken: the largest, or the smallest";
  let description = [{
    ```mlir
    #plan.top_k<largest = true>
    ```
  }];
  let parameters = (ins Plan_Flag:$largest);
  let assemblyFormat = "(`<` struct($largest)^ `>`)?";
}

def Plan_CombineAttr : Plan_Attr<"Combine", "combine"> {
  let summary = "how a scan or a scatter combines an element with the one that is there";
  let description = [{
    ```mlir
    #plan.combine<prod>
    ```
  }];
  let parameters = (ins Plan_Word<"Combine", "way to combine">:$kind);
  let assemblyFormat = "`<` $kind `>`";
}

def Plan_PackedDotAttr : Plan_Attr<"PackedDot", "packed_dot"> {
  let summary = "how the weights of a product are packed";
  let description = [{
    ```mlir
    #plan.packed_dot<bits = 2, zeros = #plan.view<3 shape [8, 2] strides [2, 1]>>
    ```
  }];
  let parameters = (ins Plan_Int<"8">:$bits, Plan_View:$zeros, Plan_View:$experts);
  let assemblyFormat = "(`<` struct($bits, $zeros, $experts)^ `>`)?";
}

def Plan_CallAttr : Plan_Attr<"Call", "call", [DeclareAttrInterfaceMethods<NN_LoweringAttrInterface>]> {
  let summary = "a call; its kinds and operands are those of `Call` in runtime/abi/plan.fbs";
  let description = [{
    `details` are those of its kind: `#plan.conv` of a convolution and its
    derivatives, `#plan.pool`, `#plan.attention`, `#plan.recurrent`,
    `#plan.top_k`, `#plan.packed_dot`, or `#plan.combine` of a scan and a scatter. `dot`,
    `update_slice` and products of experts have none. What has its default value is left out.

    ```mlir
    #plan.call<dot, operands = [#plan.view<0 shape [4, 16] strides [16, 1]>, ...], post_ops = [#plan.post_op<relu>]>
    #plan.call<pool_max, operands = [...], details = #plan.pool<strides = [2, 2], window = [3, 3]>>
    ```
  }];
  let parameters = (ins Plan_Word<"CallKind", "call">:$kind, Plan_List<"::partita::plan::ViewAttr">:$operands,
    Plan_Details:$details, Plan_List<"::partita::plan::PostOpAttr">:$post_ops);
  let assemblyFormat = "`<` $kind (`,` struct($operands, $details, $post_ops)^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The details as those of a kind; null if they are another's.
    template <typename DetailsT> DetailsT getDetailsAs() const {
      return ::llvm::dyn_cast_or_null<DetailsT>(getDetails());
    }
    /// The views of the details: a bias, masks, what a recurrent layer reads
    /// beside its operands.
    ::llvm::SmallVector<ViewAttr> getViewsOfDetails() const;
  }];
}

#endif // PARTITA_DIALECTS_PLAN_PLANATTRS_TD
