//===- NNStructure.td - Parameters, constants, clusters ------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_NNSTRUCTURE_TD
#define PARTITA_DIALECTS_NN_NNSTRUCTURE_TD

include "dialects/nn/NNBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"

def NN_WeightOp : NN_Op<"weight", [Symbol]> {
  let summary = "a parameter of the model: its type, and where its bytes are";
  let description = [{
    Either `file`, `offset` and `bytes` name little-endian row-major bytes of a
    file (its path as the compiler opens it), or `value` holds the elements, if
    they are in no file. `origin` is the parameter's name in the ONNX model. The
    symbol is derived from it.

    A `state` is written by a step: a result of the model's function with
    `nn.state` is its new value. The bytes here are its initial value. A value
    that is computed from a state has the rate of a step: it is not computed at
    load.

    Devices may have parts of a state. Then `part` is the type of a part, and
    `dist.sharding` says how the tensor is cut.

    Constraints:
    * (C1) exactly one of `file` and `value` is given.
    * (C2) `offset` >= 0, and `bytes` is the number of elements times their size.
    * (C3) `value` has type `type`.
    * (C4) only a state has a `part`, of the rank and element type of `type`.

    ```mlir
    nn.weight @conv1.weight "conv1.weight" : tensor<10x1x5x5xf32> in "mnist.onnx" at 4242 bytes 1000
    nn.weight @scale "scale" : tensor<2xf32> = dense<[1.0, 2.0]> : tensor<2xf32>
    nn.weight state @count "count" : tensor<i64> = dense<0> : tensor<i64>
    ```
  }];
  let noDerivative = "it is no value";
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$origin, TypeAttrOf<NN_Tensor>:$type,
    OptionalAttr<StrAttr>:$file, OptionalAttr<I64Attr>:$offset, OptionalAttr<I64Attr>:$bytes,
    OptionalAttr<ElementsAttr>:$value, UnitAttr:$state, OptionalAttr<TypeAttrOf<NN_Tensor>>:$part);
  let assemblyFormat = [{
    (`state` $state^)? $sym_name $origin `:` $type (`part` $part^)? (`in` $file^ `at` $offset `bytes` $bytes)? (`=` $value^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// A weight that nothing uses is not part of the model's interface.
    bool canDiscardOnUseEmpty() { return true; }
    /// Whether it is what the model itself leaves for the next step.
    bool isCarried();
    /// What one device has of it.
    ::mlir::RankedTensorType getPartType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getPart().value_or(getType()));
    }
  }];
}

def NN_ParameterOp : NN_ValueOp<"parameter", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the value of a weight";
  let description = [{
    For a state this is its value when a step begins. The op has `state` itself,
    so that passes need not look up the weight.

    Constraints:
    * (C1) `weight` names an `nn.weight` of the module. `result` is of its type, or of its `part`.
    * (C2) the op has `state` if and only if the weight has.

    Sharding: `()->([i,j])`.

    ```mlir
    %w = nn.parameter @conv1.weight : tensor<10x1x5x5xf32>
    %n = nn.parameter state @count : tensor<i64>
    ```
  }];
  let noDerivative = "it has no operands: its cotangent is the gradient of a parameter";
  let arguments = (ins FlatSymbolRefAttr:$weight, UnitAttr:$state);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "(`state` $state^)? $weight attr-dict `:` type($result)";
}

def NN_AccumulatorOp : NN_ValueOp<"accumulator", [DeclareOpInterfaceMethods<NN_IndexedOpInterface>]> {
  let summary = "a sum over the micro-batches so far";
  let description = [{
    The sum is 0 when a step begins. Each micro-batch reads it, adds to it, and
    leaves the result in the same bytes, for the next micro-batch
    (`nn.sum_micro_batches`). `number` tells accumulators apart.

    Its rate is that of a step: a unit that runs once a step sets the bytes to
    0.

    With several `lanes` it is as many sums: micro-batch m reads and adds to the
    one of number m modulo `lanes`.

    Constraints:
    * (C1) there is a lane.

    ```mlir
    %a = nn.accumulator 3 : tensor<10x256xf32>
    %b = nn.accumulator 4 lanes 8 : tensor<10x256xf32>
    ```
  }];
  let noDerivative = "it has no operands";
  let arguments = (ins I64Attr:$number, DefaultValuedAttr<I64Attr, "1">:$lanes);
  let results = (outs NN_NumberTensor:$result);
  let assemblyFormat = "$number (`lanes` $lanes^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def NN_SumMicroBatchesOp : NN_ValueOp<"sum_micro_batches",
    [AllTypesMatch<["x", "result"]>]> {
  let summary = "the sum of a value over all micro-batches of a step";
  let description = [{
    The result has the rate of an update: it is known when the last micro-batch
    has been computed. With `lane` it is the sum of that lane of the accumulator.

    `--nn-form-accumulators` gives it an `accumulator`. Then `x` is the
    accumulator plus the value of the micro-batch. Without one, a step has one
    micro-batch, or the op stands for the sum that is to be formed.

    Constraints:
    * (C1) `accumulator`, if it is there, has the type of `x`.
    * (C2) only a sum in an accumulator has a `lane`, one of those.

    ```mlir
    %s = nn.sum_micro_batches %g : tensor<10x256xf32>
    // becomes
    %a = nn.accumulator 3 : tensor<10x256xf32>
    %n = nn.add %a, %g : tensor<10x256xf32>
    %s = nn.sum_micro_batches %n in %a : tensor<10x256xf32> : tensor<10x256xf32>
    // of one lane of several
    %t = nn.sum_micro_batches %m in %b : tensor<10x256xf32> lane 2 : tensor<10x256xf32>
    ```
  }];
  let noDerivative = "sums over micro-batches are made of gradients, when those are there";
  let arguments = (ins NN_NumberTensor:$x, Optional<NN_NumberTensor>:$accumulator, OptionalAttr<I64Attr>:$lane);
  let results = (outs NN_NumberTensor:$result);
  let assemblyFormat = "$x (`in` $accumulator^ `:` type($accumulator))? (`lane` $lane^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def NN_ConstantOp : NN_ValueOp<"constant", [ConstantLike, AllTypesMatch<["value", "result"]>], ["buildLocal"]> {
  let summary = "a small constant";
  let description = [{
    Shape arithmetic and the importer make constants. Large constants are
    weights instead.

    Sharding: `()->([i,j])` where all elements are the same, else replicated.

    ```mlir
    %c = nn.constant dense<0.5> : tensor<2x8xf32>
    ```
  }];
  let noDerivative = "it has no operands";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$value attr-dict";
  let hasFolder = 1;
}

// The importer makes these two of a node Gradient, and `--nn-resolve-gradients`
// replaces them before anything else looks at the model.

def NN_VariableOp : NN_Op<"variable", [Pure, AllTypesMatch<["x", "result"]>,
    DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>]> {
  let summary = "a value as a variable of which gradients are taken";
  let description = [{
    The result is `x`. What is computed from the result depends on the variable,
    and what is computed from `x` itself does not: the same tensor may be a
    variable here and a constant there. `number` tells variables apart.

    ```mlir
    %v = nn.variable %x number 0 : tensor<2x8xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, I64Attr:$number);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$x `number` $number attr-dict `:` type($result)";
}

def NN_GradientOp : NN_Op<"gradient", [Pure]> {
  let summary = "the gradient of the sum of a tensor's elements";
  let description = [{
    Each result is the derivative of the sum of all elements of `y` to a
    variable. Of several variables one is held fixed while another changes. The
    derivative is 0 to a variable on which `y` does not depend through floats.

    Constraints:
    * (C1) `variables` are results of `nn.variable`, each of a different one.
    * (C2) the results have the types of `variables`.

    ```mlir
    %v = nn.variable %x number 0 : tensor<8xf32>
    %y = nn.mul %v, %v : tensor<8xf32>
    %g = nn.gradient %y to %v : tensor<8xf32>, (tensor<8xf32>) -> tensor<8xf32>
    ```
  }];
  let noDerivative = "it is replaced by the derivative that it stands for, which may be differentiated again";
  let arguments = (ins NN_FloatTensor:$y, Variadic<NN_FloatTensor>:$variables);
  let results = (outs Variadic<NN_FloatTensor>:$results);
  let assemblyFormat = "$y `to` $variables attr-dict `:` type($y) `,` functional-type($variables, $results)";
  let hasVerifier = 1;
}

def NN_ClusterKind : I32EnumAttr<"ClusterKind", "what computes a cluster", [
    I32EnumAttrCase<"kernel", 0>, I32EnumAttrCase<"call", 1>]> {
  let cppNamespace = "::partita::nn";
  let genSpecializedAttr = 0;
}
def NN_ClusterKindAttr : EnumAttr<NN_Dialect, NN_ClusterKind, "cluster_kind">;

def NN_ClusterAttr : AttrDef<NN_Dialect, "Cluster"> {
  let mnemonic = "cluster";
  let summary = "on an op: the cluster that it belongs to";
  let description = [{
    Ops with the same number are computed together: by a `call` of a library, or
    by a generated `kernel`. `--fuse-clusters` decides this. No later pass
    changes it.

    ```mlir
    %0 = nn.dot %x, %w ... {nn.cluster = #nn.cluster<3, call>}
    %1 = nn.relu %0 {nn.cluster = #nn.cluster<3, call>} : tensor<2x8xf32>
    ```
  }];
  let parameters = (ins "int64_t":$number, EnumParameter<NN_ClusterKind>:$kind);
  let assemblyFormat = "`<` $number `,` $kind `>`";
}

def NN_ClusterOp : NN_Op<"cluster", [IsolatedFromAbove, SingleBlockImplicitTerminator<"YieldOp">,
    DeclareOpInterfaceMethods<NN_CostOpInterface>, RecursiveMemoryEffects]> {
  let summary = "ops that are computed as one kernel or one library call";
  let description = [{
    `kind` says whether a `call` of a library or a generated `kernel` computes
    it. `lowering`, once chosen, has the details: a `#plan.call` or a
    `#plan.kernel`.

    Constraints:
    * (C1) the block's arguments have the types of the operands.
    * (C2) the yielded values have the types of the results.
    * (C3) a lowering is of the cluster's kind.

    ```mlir
    %r = nn.cluster kernel (%a = %x, %b = %y) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
      %s = nn.add %a, %b : tensor<8xf32>
      nn.yield %s : tensor<8xf32>
    }
    ```
  }];
  let noDerivative = "clusters are formed of what is differentiated already";
  let arguments = (ins Variadic<NN_Tensor>:$operands, NN_ClusterKindAttr:$kind, OptionalAttr<NN_LoweringAttrInterface>:$lowering);
  let results = (outs Variadic<NN_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def NN_YieldOp : NN_Op<"yield", [Pure, Terminator, ReturnLike, HasParent<"ClusterOp">]> {
  let summary = "the results of a cluster";
  let noDerivative = "clusters are formed of what is differentiated already";
  let arguments = (ins Variadic<NN_Tensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ /* nothing to add */ }]>];
}

#endif // PARTITA_DIALECTS_NN_NNSTRUCTURE_TD
