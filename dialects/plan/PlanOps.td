//===- PlanOps.td - Programs, memory and actions --------------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_PLAN_PLANOPS_TD
#define PARTITA_DIALECTS_PLAN_PLANOPS_TD

include "dialects/plan/PlanAttrs.td"
include "dialects/plan/PlanInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===----------------------------------------------------------------------===//
// Types and enums
//===----------------------------------------------------------------------===//

def Plan_SlotType : TypeDef<Plan_Dialect, "Slot"> {
  let mnemonic = "slot";
  let summary = "bytes of a device that hold a dense row-major tensor";
  let parameters = (ins "::mlir::RankedTensorType":$tensor);
  let assemblyFormat = "`<` $tensor `>`";
  let extraClassDeclaration = "int64_t getByteSize() const { return ::partita::nn::getByteSize(getTensor()); }";
}

def Plan_FrameType : TypeDef<Plan_Dialect, "Frame"> {
  let mnemonic = "frame";
  let summary = "bytes of a device's arena of which each micro-batch in flight has its own copy";
}

def Plan_PortKind : I32EnumAttr<"PortKind", "on which side of the model a port is", [
    I32EnumAttrCase<"input", 0>, I32EnumAttrCase<"output", 1>, I32EnumAttrCase<"bound_input", 2>]> {
  let cppNamespace = "::partita::plan";
  let genSpecializedAttr = 0;
}
def Plan_PortKindAttr : EnumAttr<Plan_Dialect, Plan_PortKind, "port_kind">;

/// Numbers and sizes; the getter of I64Attr gives unsigned ones.
def Plan_I64 : TypedSignlessIntegerAttrBase<I64, "int64_t", "64-bit signless integer attribute">;

def Plan_SpaceAttr : Plan_Enum<"Space", "space", "where the bytes of a slot lie">;
def Plan_SpanAttr : Plan_Enum<"Span", "span", "for how long a slot holds one value">;
def Plan_CollectiveKindAttr : Plan_Enum<"CollectiveKind", "collective_kind", "what devices do together">;
def Plan_ReductionAttr : Plan_Enum<"Reduction", "reduction", "how the elements of devices are combined">;
def Plan_CollectionKindAttr : Plan_Enum<"CollectionKind", "collection_kind", "what a value of the model is that is no tensor">;

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

def Plan_ModelOp : Plan_Op<"model", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "properties of the plan as a whole";
  let description = [{
    Constraints:
    * (C1) `micro_batches`, the number for each replica, is at least 1.

    `machine` names the processor for which times were predicted, with `threads`
    per device. `machine_id` names the measurements. Without them the times are
    those of a processor in general. One device would take `alone_ns` for a step
    of all devices; it is 0 if there is only one, or if that is not known.

    `dimensions` are those for whose sizes an artifact has several plans, with the
    sizes of this one. Samples may be padded to them if `mask` names an input that
    is 0 there. With `full_micro_batches` samples of a micro-batch are combined with
    each other, so none may be filled up with copies of a sample. `mixes` says, in
    words, why nothing is known to be samples: a step has one micro-batch then.
    A plan with `full_steps` has no steps of fewer micro-batches. So many
    `sequences` have states of their own; a step is of one of them. They are groups
    of `step_sequences`, whose states follow one another along dimension 0; the last
    input says which of a group a step is of, if that is more than one. `entry` is what
    the plan is for, if the artifact has several of one model: `train` or `eval`.
    `training` says how it is trained, as JSON.

    ```mlir
    plan.model "mnist" schedule "fill_drain" micro_batches 4 step_ns 81000 bubble 2.5e-01
    ```
  }];
  let arguments = (ins StrAttr:$model, StrAttr:$schedule,
    Plan_I64:$micro_batches, Plan_I64:$step_ns, F64Attr:$bubble,
    DefaultValuedAttr<Plan_I64, "0">:$alone_ns, OptionalAttr<StrAttr>:$machine,
    DefaultValuedAttr<Plan_I64, "0">:$threads, OptionalAttr<StrAttr>:$machine_id,
    OptionalAttr<DictionaryAttr>:$dimensions, OptionalAttr<StrAttr>:$mask, UnitAttr:$full_micro_batches,
    OptionalAttr<StrAttr>:$mixes, UnitAttr:$full_steps, OptionalAttr<StrAttr>:$entry,
    OptionalAttr<StrAttr>:$training, DefaultValuedAttr<Plan_I64, "1">:$sequences,
    DefaultValuedAttr<Plan_I64, "1">:$step_sequences);
  let assemblyFormat = [{
    $model `schedule` $schedule `micro_batches` $micro_batches
    `step_ns` $step_ns `bubble` $bubble attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_PortOp : Plan_Op<"port", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "an input or output of the model";
  let description = [{
    `type` is that of one micro-batch. `index` is the position among the model's
    own inputs or outputs. The ports of a kind are numbered in textual order. If
    an intermediate value was made an output, `node` is the node that makes it.
    A port that is `per_step` has one tensor for all micro-batches of a step.

    Constraints:
    * (C1) `batch_axis` is -1 or a dimension of `type`.

    ```mlir
    plan.port input "x" index 0 batch_axis 0 : tensor<8x1x28x28xf32>
    ```
  }];
  let arguments = (ins Plan_PortKindAttr:$kind, StrAttr:$port_name, Plan_I64:$index,
    Plan_I64:$batch_axis, TypeAttr:$type, OptionalAttr<StrAttr>:$node, UnitAttr:$per_step);
  let assemblyFormat = "$kind $port_name `index` $index `batch_axis` $batch_axis `:` $type attr-dict";
  let hasVerifier = 1;
}

def Plan_CheckOp : Plan_Op<"check", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "indices that a step looks at, because only some are allowed";
  let description = [{
    An action `plan.examine` names a check by its number among those of the module.
    It has a slot `tensor<rows x 2 x i64>` (`dialects/nn/CheckAttr.h` says what is in it).
    `shape` is that of the indices of one micro-batch. `op`, `node`, `operand` and
    `tensor` are their names in the model.

    Constraints:
    * (C1) `rows` is at least 1 and divides the number of indices.
    * (C2) `low` and `high` have one entry, or one for each entry of the last dimension.

    ```mlir
    plan.check "Gather" node "embed" operand "indices" tensor "ids" shape [4, 128] rows 4 from [-1000] to [999]
    ```
  }];
  let arguments = (ins StrAttr:$op, StrAttr:$node, StrAttr:$operand, StrAttr:$tensor,
    DenseI64ArrayAttr:$shape, Plan_I64:$rows, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high);
  let assemblyFormat = [{
    $op `node` $node `operand` $operand `tensor` $tensor `shape` $shape `rows` $rows
    `from` $low `to` $high attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_CollectionOp : Plan_Op<"collection", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "an input or output of the model that is a sequence or an optional";
  let description = [{
    A plan has only tensors. The elements of a sequence "x" are the ports "x.0",
    "x.1", ... with the same `index`. An optional tensor "x" is the port "x".
    This op records the sequence or optional, so that files with sequences and
    optionals can be read and compared.

    Constraints:
    * (C1) `kind` is `input` or `output`.
    * (C2) `length` is the number of tensors (1 for an optional tensor), or -1 for an
      optional without a value.

    ```mlir
    plan.collection input "x" index 0 sequence length 3
    ```
  }];
  let arguments = (ins Plan_PortKindAttr:$kind, StrAttr:$collection_name, Plan_I64:$index,
    Plan_CollectionKindAttr:$of, Plan_I64:$length);
  let assemblyFormat = "$kind $collection_name `index` $index $of `length` $length attr-dict";
  let hasVerifier = 1;
}

def Plan_StageOp : Plan_Op<"stage", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "the properties of a stage, for people";
  let description = [{
    `peak` is the most bytes that one of its devices holds. It is 0 until
    `--plan-reserve-memory` computes it.

    ```mlir
    plan.stage "F0" on @program0 blocks ["B1"] flops 640 parameters 0 activations 64 sent 0 peak 4096 ns 1200
    ```
  }];
  let arguments = (ins StrAttr:$stage_name, FlatSymbolRefAttr:$program, StrArrayAttr:$blocks,
    Plan_I64:$flops, Plan_I64:$parameter_bytes, Plan_I64:$activation_bytes,
    Plan_I64:$sent_bytes, Plan_I64:$peak_bytes, Plan_I64:$duration_ns);
  let assemblyFormat = [{
    $stage_name `on` $program `blocks` $blocks `flops` $flops `parameters` $parameter_bytes
    `activations` $activation_bytes `sent` $sent_bytes `peak` $peak_bytes `ns` $duration_ns attr-dict
  }];
}

def Plan_DeviceOp : Plan_Op<"device", [Symbol, HasParent<"::mlir::ModuleOp">,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a device and the program that it executes";
  let description = [{
    `kind` is the kind of device of the runtime; without it, the device is a
    CPU. `coordinate` is its place in the mesh of all devices that execute the
    program.

    Constraints:
    * (C1) `program` is a program of the module.
    * (C2) `coordinate` has an entry for each axis of the module, within its size.

    ```mlir
    plan.device @device0 "cpu:0" executes @program0
    plan.device @device1 "cpu:1" executes @program0 at [1, 0]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$device_name, OptionalAttr<StrAttr>:$kind,
    FlatSymbolRefAttr:$program, OptionalAttr<DenseI64ArrayAttr>:$coordinate);
  let assemblyFormat = [{
    $sym_name $device_name (`kind` $kind^)? `executes` $program (`at` $coordinate^)? attr-dict
  }];
}

def Plan_AxisOp : Plan_Op<"axis", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "an axis of the mesh on which each program is executed";
  let description = [{
    Axes are numbered in textual order, outermost first. Along "data"
    micro-batches are dealt out.

    Constraints:
    * (C1) `size` is at least 1.
    * (C2) The module begins with its axes.

    ```mlir
    plan.axis "data" size 2
    ```
  }];
  let arguments = (ins StrAttr:$axis_name, Plan_I64:$size);
  let assemblyFormat = "$axis_name `size` $size attr-dict";
  let hasVerifier = 1;
}

def Plan_ChannelOp : Plan_Op<"channel", [Symbol, HasParent<"::mlir::ModuleOp">,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a value that crosses devices";
  let description = [{
    The value goes from each device of one program to the device of another
    program with the same coordinate. A channel of 0 bytes carries a token,
    which only orders actions. `duration_ns` is the predicted time from sending the
    value to the point at which the receiver may read it.

    Constraints:
    * (C1) `source` and `target` are programs of the module, and not the same.
    * (C2) `bytes` is not negative.

    ```mlir
    plan.channel @c0 "conv1_out" from @program0 to @program1 bytes 4096 reason "F0 makes it, F1 reads it"
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$value, FlatSymbolRefAttr:$source,
    FlatSymbolRefAttr:$target, Plan_I64:$bytes, StrAttr:$reason, DefaultValuedAttr<Plan_I64, "0">:$duration_ns);
  let assemblyFormat = "$sym_name $value `from` $source `to` $target `bytes` $bytes `reason` $reason attr-dict";
}

def Plan_CollectiveOp : Plan_Op<"collective", [Symbol, HasParent<"::mlir::ModuleOp">,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a collective operation of devices of a program";
  let description = [{
    A group consists of the devices that differ only along `axes`, which are
    numbers of the module's axes. A tensor is seen as `rows` rows. In each row
    the devices' parts, of `part` elements each, follow one another. With n
    devices in a group:

    | kind | source | target |
    | --- | --- | --- |
    | `all_reduce` | [rows, part] | [rows, part], combined |
    | `all_gather` | [rows, part] | [rows, n * part] |
    | `reduce_scatter` | [rows, n * part] | [rows, part], combined |
    | `all_to_all` | [rows, n * part] | [n, rows, part] |
    | `broadcast` | [rows, part] | [rows, part], of device `root` of the group |

    Constraints:
    * (C1) `program` is a program of the module.
    * (C2) `axes` are axes of the module, each once. "data" is one of them only if steps have all of their micro-batches.
    * (C3) `rows` and `part` are not negative.
    * (C4) `root` is a position in the group.

    ```mlir
    plan.collective @c0 "fc2" all_reduce sum f32 in @program0 rows 1 part 98304 axes [1] ns 20000 reason "fc2.weight is cut along tensor"
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$value, Plan_CollectiveKindAttr:$kind,
    Plan_ReductionAttr:$reduction, TypeAttr:$element, FlatSymbolRefAttr:$program, Plan_I64:$rows, Plan_I64:$part,
    DenseI64ArrayAttr:$axes, Plan_I64:$duration_ns, StrAttr:$reason, DefaultValuedAttr<Plan_I64, "0">:$root);
  let assemblyFormat = [{
    $sym_name $value $kind $reduction $element `in` $program `rows` $rows `part` $part `axes` $axes
    `ns` $duration_ns `reason` $reason attr-dict
  }];
  let extraClassDeclaration = [{
    /// The number of devices in a group.
    int64_t getGroupSize();
  }];
}

def Plan_ProgramOp : Plan_Op<"program", [Symbol, SymbolTable, SingleBlock, NoTerminator,
    NoRegionArguments, HasParent<"::mlir::ModuleOp">]> {
  let summary = "what a device executes: its memory, its units, its load program and the actions of one step of the model";
  let description = [{
    Actions (`run`, `send`, ...) stand in the device's total order. `--plan-place`
    sets the offsets of slots and the bytes of `arena` and `constant`.
    `--plan-reserve-memory` sets the other sizes. `parameters` are the bytes of
    weights and constants that units read in their plain layout. `packed` are
    the bytes of those that a library reorders. `workspace` is the library's
    scratch on each core. Without these sizes the library has no memory of its
    own.

    ```mlir
    plan.program @program0 arena 4096 constant 0 parameters 0 packed 0 workspace 1048576 {
      %x = plan.slot arena at 0 : <tensor<8xf32>>
      %y = plan.slot arena at 64 : <tensor<8xf32>>
      plan.unit @F0 stage 0 ns 1200 {
        plan.dispatch #plan.kernel<"k0", extent = 8, grain = 8>(%x) -> (%y) label "relu" flops 8 bytes 64
          : (!plan.slot<tensor<8xf32>>) -> !plan.slot<tensor<8xf32>>
      }
      plan.load_input 0 micro_batch 0 to %x : <tensor<8xf32>>
      plan.run @F0 micro_batch 0
      plan.store_output 0 micro_batch 0 from %y : <tensor<8xf32>>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<Plan_I64>:$arena_bytes,
    OptionalAttr<Plan_I64>:$constant_bytes, OptionalAttr<Plan_I64>:$parameter_bytes,
    OptionalAttr<Plan_I64>:$packed_bytes, OptionalAttr<Plan_I64>:$workspace_bytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name (`arena` $arena_bytes^ `constant` $constant_bytes)?
    (`parameters` $parameter_bytes^ `packed` $packed_bytes `workspace` $workspace_bytes)?
    attr-dict-with-keyword $body
  }];
}

//===----------------------------------------------------------------------===//
// Bytes and work
//===----------------------------------------------------------------------===//

def Plan_FrameOp : Plan_Op<"frame", [HasParent<"ProgramOp">]> {
  let summary = "bytes of the arena of which each micro-batch in flight has its own copy";
  let description = [{
    A frame holds values that pass from one unit or device to another while the
    next micro-batch is in progress. Micro-batch m uses copy m modulo the number
    of copies.

    Constraints:
    * (C1) there is a copy, and each begins at a multiple of 64.
    * (C2) each copy ends within the arena.

    ```mlir
    %f = plan.frame bytes 64 copies [0, 128]
    ```
  }];
  let arguments = (ins Plan_I64:$bytes, DenseI64ArrayAttr:$copies);
  let results = (outs Plan_FrameType:$frame);
  let assemblyFormat = "`bytes` $bytes `copies` $copies attr-dict";
  let builders = [OpBuilder<(ins "int64_t":$bytes, "::llvm::ArrayRef<int64_t>":$copies), [{
    build($_builder, $_state, FrameType::get($_builder.getContext()), bytes, copies);
  }]>];
  let hasVerifier = 1;
}

def Plan_SlotOp : Plan_Op<"slot", [HasParent<"ProgramOp">, AttrSizedOperandSegments]> {
  let summary = "a slot: one value's bytes in the arena, a frame, the constant region, a weight or a state";
  let description = [{
    A value has one slot, even if it is read with several shapes. Slots of
    values that do not live at the same time may share bytes. Before
    `--plan-place` slots have no offset.

    A state has bytes of its own, which outlive the step; of a `carried` one
    (`nn.role`) each micro-batch has its own. They are written once in a step. A slot that is `renewed` has what was written, and is read behind
    that; others have what the step before has left, and are read before. `span` says for how long a slot of the
    arena holds one value: for a `micro_batch`, for a `step`, or a `sum` to which
    each micro-batch adds, in their order. Of a state that is cut over devices, a
    slot has the device's part; `cuts` say which that is.

    A sum with several `lanes` is as many sums. It lies in a frame of its own,
    and micro-batch m adds to the one of copy m. Units that run once a step use
    slots `of` it, one for each `lane`, which lie where its copies do.

    A slot that `joins` others has their bytes, one after another. A collective
    adds all of them up at once.

    Constraints:
    * (C1) a slot in `weight` or `state` names a weight, a slot in `frame` names a frame, and other slots name neither; an offset is a multiple of 64; a weight and a state have no offset.
    * (C2) the slot ends within the arena, its frame or the constant region.
    * (C3) only a slot in the arena has a span other than `micro_batch`, but for a sum of several lanes in a frame with as many copies.
    * (C4) only a state has cuts, or is renewed.
    * (C5) only a sum has lanes, or is a lane: of another slot of its type with lanes, in the arena, where that lies for the lane.
    * (C6) only a slot in the arena joins others: slots in the arena with its span and element type, without lanes, that join none, and that lie within it.

    ```mlir
    %x = plan.slot arena at 128 : <tensor<8x4xf32>>
    %y = plan.slot frame %f at 0 : <tensor<8x4xf32>>
    %w = plan.slot weight @conv1.weight : <tensor<4x3xf32>>
    %s = plan.slot state @conv1.weight : <tensor<4x3xf32>>
    %n = plan.slot state renewed @conv1.weight : <tensor<4x3xf32>>
    %g = plan.slot arena span sum at 256 : <tensor<4x3xf32>>
    %h = plan.slot frame %f2 span sum at 0 lanes 2 : <tensor<4x3xf32>>
    %l = plan.slot arena span sum at 512 of %h : !plan.slot<tensor<4x3xf32>> lane 1 : <tensor<4x3xf32>>
    %j = plan.slot arena span sum at 256 joins %g, %k : !plan.slot<tensor<4x4xf32>>, !plan.slot<tensor<5xf32>> : <tensor<21xf32>>
    %m = plan.slot state @moment cuts [#plan.cut<dim = 0, blocks = 1, axes = [0]>] : <tensor<2x3xf32>>
    ```
  }];
  let arguments = (ins Plan_SpaceAttr:$space, Optional<Plan_FrameType>:$frame, OptionalAttr<Plan_I64>:$offset,
    OptionalAttr<FlatSymbolRefAttr>:$weight,
    DefaultValuedAttr<Plan_SpanAttr, "::partita::plan::Span::micro_batch">:$span, OptionalAttr<Plan_CutsAttr>:$cuts,
    Optional<Plan_SlotType>:$sum, OptionalAttr<Plan_I64>:$lane, DefaultValuedAttr<Plan_I64, "1">:$lanes,
    Variadic<Plan_SlotType>:$members, UnitAttr:$renewed);
  let results = (outs Plan_SlotType:$slot);
  let assemblyFormat = [{
    $space (`renewed` $renewed^)? ($frame^)? (`span` $span^)? (`at` $offset^)? ($weight^)? (`cuts` $cuts^)?
    (`of` $sum^ `:` type($sum) `lane` $lane)? (`lanes` $lanes^)?
    (`joins` $members^ `:` type($members))? attr-dict `:` type($slot)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Of (C5).
    ::llvm::LogicalResult verifyLane();
    /// Of (C6).
    ::llvm::LogicalResult verifyMembers();
    /// Bytes of the slot's tensor.
    int64_t getByteSize();
    /// Whether actions may write the slot: it is in the arena, in a frame or a
    /// state.
    bool isWritable() { return getSpace() != Space::constant && getSpace() != Space::weight; }
    /// Whether it is the bytes of a weight, or of a state with its initial
    /// value there.
    bool hasWeight() { return getSpace() == Space::weight || getSpace() == Space::state; }
  }];
}

def Plan_UnitOp : Plan_Op<"unit", [Symbol, SingleBlock, NoTerminator, NoRegionArguments, HasParent<"ProgramOp">]> {
  let summary = "a stage's work on one micro-batch";
  let description = [{
    Constraints:
    * (C1) only instructions stand in it.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_I64:$stage, Plan_I64:$duration_ns);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `stage` $stage `ns` $duration_ns attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Plan_LoadOp : Plan_Op<"load", [SingleBlock, NoTerminator, NoRegionArguments, HasParent<"ProgramOp">]> {
  let summary = "the load program: computes the constant region from the weights, once";
  let description = [{
    Constraints:
    * (C1) only instructions stand in it.
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

// `predicted_ns` is the predicted time. `modelled_ns` is the time by the rates of
// the machine alone. `work_key` is the key of the work, which is the same in
// every plan (0: not known).
class Plan_Instruction<string mnemonic>
    : Plan_Op<mnemonic, [ParentOneOf<["UnitOp", "LoadOp"]>, Plan_InstructionOpInterface]>;

// The instruction of a cluster. The cluster's lowering, which is its first
// argument and is shown first, says which slots may share bytes.
class Plan_ClusterInstruction<string mnemonic, dag lowering, string shown, string getter>
    : Plan_Op<mnemonic, [ParentOneOf<["UnitOp", "LoadOp"]>, AttrSizedOperandSegments, Plan_InstructionOpInterface]> {
  let arguments = !con(lowering, (ins Variadic<Plan_SlotType>:$inputs,
    Variadic<Plan_SlotType>:$outputs, StrAttr:$label, Plan_I64:$flops, Plan_I64:$bytes,
    DefaultValuedAttr<Plan_I64, "0">:$predicted_ns, DefaultValuedAttr<Plan_I64, "0">:$modelled_ns,
    DefaultValuedAttr<Plan_I64, "0">:$work_key));
  let assemblyFormat = shown # [{ `(` $inputs `)` `->` `(` $outputs `)`
    `label` $label `flops` $flops `bytes` $bytes
    attr-dict `:` functional-type($inputs, $outputs)
  }];
  let extraClassDeclaration = [{
    ::mlir::ValueRange getInstructionReads() { return getInputs(); }
    ::mlir::ValueRange getInstructionWrites() { return getOutputs(); }
    ::llvm::SmallVector<std::pair<::mlir::Value, ::mlir::Value>> getInstructionInPlace() {
      return ::llvm::map_to_vector(}] # getter # [{().getInPlacePairs(), [&](auto pair) {
        return std::pair<::mlir::Value, ::mlir::Value>(getInputs()[pair.first], getOutputs()[pair.second]);
      });
    }
  }];
}

def Plan_DispatchOp : Plan_ClusterInstruction<"dispatch", (ins Plan_KernelAttr:$kernel), "$kernel", "getKernel"> {
  let summary = "a compiled kernel on slots";
}

def Plan_CallOp : Plan_ClusterInstruction<"call", (ins Plan_CallAttr:$call), "$call", "getCall"> {
  let summary = "a library call on slots";
  let description = [{
    The views of `call` number the inputs first, and then the outputs.

    Constraints:
    * (C1) every view names an input or an output.
    * (C2) every view stays within the bytes of its slot.
  }];
  let hasVerifier = 1;
}

def Plan_CopyOp : Plan_Instruction<"copy"> {
  let summary = "copies the bytes of one slot into another";
  let description = [{
    Constraints:
    * (C1) both slots have the same number of bytes.
  }];
  let arguments = (ins Plan_SlotType:$source, Plan_SlotType:$destination, StrAttr:$label,
    DefaultValuedAttr<Plan_I64, "0">:$predicted_ns);
  let assemblyFormat = "$source `to` $destination `label` $label attr-dict `:` type($source) `,` type($destination)";
  let hasVerifier = 1;
}

def Plan_SliceOp : Plan_Instruction<"slice"> {
  let summary = "a device's own part of a slot";
  let description = [{
    Device r of the n devices along `axes` computes `destination[rows, part] =
    source[rows, n, part][:, r]`.

    Constraints:
    * (C1) the slots have one element type; `destination` has rows * part elements; `source` has `rows` rows of at most n * part elements.

    Elements beyond the end of a row are 0.

    ```mlir
    plan.slice %w to %s rows 768 part 1536 axes [1] label "fc1" : !plan.slot<tensor<768x3072xf32>>, !plan.slot<tensor<768x1536xf32>>
    ```
  }];
  let arguments = (ins Plan_SlotType:$source, Plan_SlotType:$destination, Plan_I64:$rows, Plan_I64:$part,
    DenseI64ArrayAttr:$axes, StrAttr:$label, DefaultValuedAttr<Plan_I64, "0">:$predicted_ns);
  let assemblyFormat = [{
    $source `to` $destination `rows` $rows `part` $part `axes` $axes `label` $label attr-dict
    `:` type($source) `,` type($destination)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Actions
//===----------------------------------------------------------------------===//

// `subject` and `slot` are C++ expressions: the attribute that names the action's
// unit, channel, port or collective, and the action's slot, if it has one. The
// kind is a line of runtime/abi/Actions.def.
class Plan_Action<string mnemonic, string subject, string slot, list<Trait> traits = []>
    : Plan_Op<mnemonic, !listconcat([HasParent<"ProgramOp">, Plan_ActionOpInterface,
        DeclareOpInterfaceMethods<SymbolUserOpInterface>], traits)> {
  code actionDeclaration = "static constexpr ::partita::abi::ActionKind kActionKind = ::partita::abi::ActionKind::" # mnemonic # [{;
    ::mlir::Attribute getActionSubject() { return }] # subject # [{; }
    ::mlir::Value getActionSlot() { return }] # slot # "; }";
  let extraClassDeclaration = actionDeclaration;
}

def Plan_RunOp : Plan_Action<"run", "getUnitAttr()", "{}"> {
  let summary = "runs a unit on a micro-batch";
  let description = [{
    Constraints:
    * (C1) `unit` is a unit of the program.
  }];
  let arguments = (ins FlatSymbolRefAttr:$unit, Plan_I64:$micro_batch);
  let assemblyFormat = "$unit `micro_batch` $micro_batch attr-dict";
}

class Plan_ChannelAction<string mnemonic, string slot, dag moreArguments>
    : Plan_Action<mnemonic, "getChannelAttr()", slot> {
  let arguments = !con((ins FlatSymbolRefAttr:$channel, Plan_I64:$micro_batch), moreArguments);
}

def Plan_SendOp : Plan_ChannelAction<"send", "getSlot()", (ins Optional<Plan_SlotType>:$slot)> {
  let summary = "posts a slot on a channel; does not block";
  let description = [{
    The slot must not be written before the `wait` with the same channel and
    micro-batch. A `send` without a slot sends a token.

    Constraints:
    * (C1) `channel` is a channel of the module, and this program its source.
    * (C2) the slot has the channel's number of bytes (a token: 0).
  }];
  let assemblyFormat = "$channel `micro_batch` $micro_batch (`from` $slot^ `:` type($slot))? attr-dict";
}

def Plan_RecvOp : Plan_ChannelAction<"recv", "getSlot()", (ins Optional<Plan_SlotType>:$slot)> {
  let summary = "blocks until the bytes that were sent on a channel have arrived in a slot";
  let description = [{
    If a `release` with the same channel and micro-batch follows, devices that
    share memory may read the sender's slot in place until then.

    Constraints:
    * (C1) `channel` is a channel of the module, and this program its target.
    * (C2) the slot has the channel's number of bytes (a token: 0).
  }];
  let assemblyFormat = "$channel `micro_batch` $micro_batch (`to` $slot^ `:` type($slot))? attr-dict";
}

def Plan_ReleaseOp : Plan_ChannelAction<"release", "{}", (ins)> {
  let summary = "ends the use of the bytes that a recv received";
  let description = [{
    Constraints:
    * (C1) `channel` is a channel of the module, and this program its target.
  }];
  let assemblyFormat = "$channel `micro_batch` $micro_batch attr-dict";
}

def Plan_WaitOp : Plan_ChannelAction<"wait", "{}", (ins)> {
  let summary = "blocks until the receiver has taken the bytes that were sent";
  let description = [{
    The receiver has taken the bytes when it has released them, or, without a
    `release`, when it has received them.

    Constraints:
    * (C1) `channel` is a channel of the module, and this program its source.
  }];
  let assemblyFormat = "$channel `micro_batch` $micro_batch attr-dict";
}

def Plan_LoadInputOp : Plan_Action<"load_input", "getPortAttr()", "getSlot()"> {
  let summary = "copies an input's bytes of the micro-batch into a slot";
  let description = [{
    Constraints:
    * (C1) `port` counts the module's input ports, and the slot has its number of bytes.
  }];
  let arguments = (ins Plan_I64:$port, Plan_I64:$micro_batch, Plan_SlotType:$slot);
  let assemblyFormat = "$port `micro_batch` $micro_batch `to` $slot attr-dict `:` type($slot)";
}

def Plan_StoreOutputOp : Plan_Action<"store_output", "getPortAttr()", "getSlot()"> {
  let summary = "copies a slot to an output";
  let description = [{
    Constraints:
    * (C1) `port` counts the module's output ports, and the slot has its number of bytes.
  }];
  let arguments = (ins Plan_I64:$port, Plan_I64:$micro_batch, Plan_SlotType:$slot);
  let assemblyFormat = "$port `micro_batch` $micro_batch `from` $slot attr-dict `:` type($slot)";
}

class Plan_CollectiveAction<string mnemonic> : Plan_Action<mnemonic, "getCollectiveAttr()", "getSlot()"> {
  let arguments = (ins FlatSymbolRefAttr:$collective, Plan_I64:$micro_batch, Plan_SlotType:$slot);
}

def Plan_StartOp : Plan_CollectiveAction<"start"> {
  let summary = "begins a collective; does not block";
  let description = [{
    Until the `finish`, this slot must not be written, and the slot of the
    `finish` must not be used.

    Constraints:
    * (C1) `collective` is a collective of the module, in this program.
    * (C2) the slot has the number of bytes of a device's source.
  }];
  let assemblyFormat = "$collective `micro_batch` $micro_batch `from` $slot attr-dict `:` type($slot)";
}

def Plan_FinishOp : Plan_CollectiveAction<"finish"> {
  let summary = "blocks until the result of a collective is in a slot";
  let description = [{
    Constraints:
    * (C1) `collective` is a collective of the module, in this program.
    * (C2) the slot has the number of bytes of a device's target.
  }];
  let assemblyFormat = "$collective `micro_batch` $micro_batch `to` $slot attr-dict `:` type($slot)";
}

def Plan_ExamineOp : Plan_Action<"examine", "getCheckAttr()", "getSlot()"> {
  let summary = "hands a slot to the host, which looks there for wrong indices when the step has ended";
  let description = [{
    Constraints:
    * (C1) `check` counts the module's checks, and the slot has its rows.
  }];
  let arguments = (ins Plan_I64:$check, Plan_I64:$micro_batch, Plan_SlotType:$slot);
  let assemblyFormat = "$check `micro_batch` $micro_batch `from` $slot attr-dict `:` type($slot)";
}

#endif // PARTITA_DIALECTS_PLAN_PLANOPS_TD
