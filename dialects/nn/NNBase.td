//===- NNBase.td - The nn dialect ----------------------------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_NNBASE_TD
#define PARTITA_DIALECTS_NN_NNBASE_TD

include "dialects/nn/NNInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def NN_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::partita::nn";
  let summary = "What is computed: value ops on tensors with global, static shapes";
  let description = [{
    Every op is a pure function of ranked tensors with static shapes. Broadcasts
    are explicit: the operands of a pointwise op have the shape of its result.
    Signed integers are signless (`i8`, `i64`), unsigned ones are `ui8` and so
    on, booleans are `i1`.

    Dimensions may be 0. An op whose results have no elements folds to constants
    without elements. An op that only reads such a tensor folds to the value
    that its definition gives without it.

    Parameters are symbols (`nn.weight`) that name bytes of a file; the bytes
    themselves are never in the IR.

    Discardable attributes of this dialect:

    | attribute | on | meaning |
    | --- | --- | --- |
    | `nn.name` | arguments and results of the model's function | name in the ONNX model |
    | `nn.batch_axis` | the same | axis along which samples are counted |
    | `nn.cluster` | any op | a `#nn.cluster`: with which others it is computed, and by what; without it, alone, by a kernel |
    | `nn.check` | results of the model's function | no output: it tells of wrong indices (CheckAttr.h) |
    | `nn.state` | results of the model's function | no output: the new value of the state of this name |
    | `nn.per_step` | arguments and results of the model's function | there is one value for all micro-batches of a step |
    | `nn.mixes` | the module | a clause that says why samples are not independent: a run takes the shapes as they are |
    | `nn.trained`, `nn.untrained` | `nn.weight` | that it is trained, or why not |
    | `nn.declared` | `nn.weight` | what the model says that it is: `parameter`, `buffer` or `constant` |
    | `nn.role` | `nn.weight state` | `optimizer`, `statistic` or `carried`; without it, a parameter |
    | `nn.carried` | `nn.parameter state` | every micro-batch has its own, which the same one of the next step finds as this one has left it |
    | `nn.ring_dim`, `nn.ring_place` | `nn.weight state` | its entries along this dimension are a ring: the first one is where the state of this name says, a scalar of i64 |
    | `nn.on_host` | `nn.weight state` | it lies in the host's memory, where devices can reach that |
    | `nn.statistic` | `nn.parameter` | it is measured, not trained: a running statistic |
    | `nn.default_initial`, `nn.fans` | `nn.weight` | how PyTorch's layer draws it at random; its fan-in and fan-out |
    | `nn.initial` | `nn.weight state` | what it is drawn from when training begins |
    | `nn.statistic` | a result with `nn.state` | the new value of a running statistic |
    | `nn.half_at_zero` | `nn.relu` | its derivative at 0 is 1/2: it is a part of a function without a kink there |
    | `nn.zero_at_zero` | `nn.sqrt` | its derivative at 0 is 0: it is the last step of a norm |
    | `nn.padding_index` | `nn.gather` | the index whose rows pass no derivative back |
    | `nn.accumulate` | `nn.add` in a cluster | the operand from outside is not needed later: the cluster may add upon its bytes |
    | `nn.winograd` | `nn.conv` in a cluster | worth computing by Winograd's method |
    | `nn.model` | the module | name of the ONNX model |
    | `nn.nodes` | the module | names of all nodes of the ONNX model, in the order in which they are computed |
    | `nn.node_scopes` | the module | scopes of those nodes, as the exporter has noted them; empty where there is none |
    | `nn.node_outputs` | the module | with `--expose`: name of the output of each of those nodes, empty if it has several |
    | `nn.node_ops` | the module | with `--list-nodes`: ops of those nodes, as ONNX calls them |
    | `nn.bound_inputs` | the module | inputs whose values were known when the model was imported, with their types |
    | `nn.collections` | the module | inputs and outputs that are sequences or optionals in the ONNX model |
    | `nn.fixed_samples` | the module | the model itself says how many samples there are |
    | `nn.port` | arguments and results of the model's function | number among the inputs or the outputs of the ONNX model |
    | `nn.node` | results of the model's function | with `--expose`: the node that computes it |
    | `nn.loss_count` | a result of the model's function | how many numbers the loss is the mean of; the loss itself is their sum then |
    | `nn.gradient_of` | `nn.sum_micro_batches` | trained weight of whose gradient it is all or a part |
    | `nn.guard` | `nn.select` | the choice between the new and the old value of a running statistic |
    | `nn.inner` | `nn.cast` to halves | no node asks for the conversion |
    | `nn.yielded` | an op of a cluster that is computed twice | those of its results that leave the cluster |
    | `nn.reference` | a kernel, a module of kernels | it is compiled to scalar loops, the reference for tests |
    | `nn.schedule` | a kernel | its loops: rows, tiles, grain, what may share bytes (KernelSchedule.h) |
    | `nn.grid` | a kernel of a GPU | how rows are dealt out to threads (GridSchedule.h) |
    | `nn.unaligned` | an argument of a kernel | its address is a multiple of its element's size only, not of 64 bytes |
  }];
  let hasConstantMaterializer = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def NN_ReduceKind : I32EnumAttr<"ReduceKind", "how elements are combined", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"prod", 1>, I32EnumAttrCase<"max", 2>, I32EnumAttrCase<"min", 3>]> {
  let cppNamespace = "::partita::nn";
  let genSpecializedAttr = 0;
}
def NN_ReduceKindAttr : EnumAttr<NN_Dialect, NN_ReduceKind, "reduce_kind">;

class NN_Op<string mnemonic, list<Trait> traits = []>
    : Op<NN_Dialect, mnemonic, traits> {
  // For docs/derivatives.md. An op that is not differentiable says why it is
  // none, in a clause; one that is may say of what its derivative is one.
  string noDerivative = "";
  string derivativeNote = "";
}

/// A value op. It has no side effects, and implements the interfaces for cost
/// and sharding. `shardable`: the methods of the latter that the op overrides.
class NN_ValueOp<string mnemonic, list<Trait> traits = [], list<string> shardable = []>
    : NN_Op<mnemonic, !listconcat([Pure, DeclareOpInterfaceMethods<NN_CostOpInterface>,
        DeclareOpInterfaceMethods<NN_ShardableOpInterface, shardable>], traits)>;

// Element types that ops compute with, and types that are only stored. The
// latter are converted by `nn.cast` and moved by shape ops.
defvar NN_ComputeFloats = [F16, BF16, F32, F64];
defvar NN_ComputeIntegers = [I1, I<8>, I<16>, I<32>, I<64>, UI<8>, UI<16>, UI<32>, UI<64>];
defvar NN_StoredOnly = [F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, F4E2M1FN, I<4>, UI<4>, I<2>, UI<2>];

def NN_Tensor : StaticShapeTensorOf<!listconcat(NN_ComputeFloats, NN_ComputeIntegers, NN_StoredOnly)>;
def NN_NumberTensor : StaticShapeTensorOf<!listconcat(NN_ComputeFloats, NN_ComputeIntegers)>;
def NN_IntegerTensor : StaticShapeTensorOf<NN_ComputeIntegers>;
def NN_FloatTensor : StaticShapeTensorOf<NN_ComputeFloats>;
def NN_BoolTensor : StaticShapeTensorOf<[I1]>;
def NN_IndexTensor : StaticShapeTensorOf<[I32, I64]>;

#endif // PARTITA_DIALECTS_NN_NNBASE_TD
