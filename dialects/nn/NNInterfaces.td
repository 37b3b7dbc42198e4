//===- NNInterfaces.td - What passes ask of ops --------------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pass that names more than two concrete ops is missing an interface: it
// belongs here.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_NNINTERFACES_TD
#define PARTITA_DIALECTS_NN_NNINTERFACES_TD

include "mlir/IR/OpBase.td"

def NN_CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    What an op costs, from its types alone: floating-point (or integer)
    operations, bytes read and written if nothing is fused, and the kind of work,
    by which a machine model chooses a rate. How long a machine takes for it is
    the machine model's.
  }];
  let methods = [
    InterfaceMethod<"The cost of one execution of the op.", "::partita::nn::Cost", "getCost">
  ];
}

def NN_PointwiseOpInterface : OpInterface<"PointwiseOpInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    An op whose element i of the result is a function of elements i of the
    operands. `emitScalar` writes that function with `arith` and `math` ops on
    signless scalars; code generation, constant folding and documentation of its
    semantics all come from it.
  }];
  let methods = [
    InterfaceMethod<
      "Emits the function of one element. `operands` are signless scalars (`ui8` arrives as `i8`); so must the result be.",
      "::mlir::Value", "emitScalar",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::ValueRange":$operands)>,
    InterfaceMethod<
      "Operations an element of the result takes. A function that is computed by a polynomial counts as its terms.",
      "int64_t", "getFlopsPerElement", (ins), "", "return 1;">
  ];
}

def NN_IndexedOpInterface : OpInterface<"IndexedOpInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    An op whose element is an element of an operand, at a position that follows
    from its own and perhaps from elements of another operand, or is made of the
    position. Code generation needs no pass over memory for it.
  }];
  let methods = [
    InterfaceMethod<"Emits the element at `position`, one index a dimension. Null, with an error, where an operand is not understood.",
      "::mlir::Value", "emitElement",
      (ins "::mlir::OpBuilder &":$builder, "::partita::nn::ElementEmitter &":$emitter,
           "::llvm::ArrayRef<::partita::nn::Index>":$position)>,
    InterfaceMethod<"Whether that is one element of one operand, at a place which other operands say.",
      "bool", "readsComputedPlace", (ins), /*methodBody=*/"", /*defaultImplementation=*/"return false;">
  ];
}

def NN_RowwiseOpInterface : OpInterface<"RowwiseOpInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    An op that reads its operand row by row: all elements of some dimensions
    together, for each position of the others. It gives an element, or a row, for
    each row.
  }];
  let methods = [
    InterfaceMethod<"The dimensions that make a row.", "::llvm::SmallVector<int64_t>", "getRowDims">
  ];
}

def NN_ReductionOpInterface : OpInterface<"ReductionOpInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    An op whose element combines a term for each position of some further loops:
    a dot has a loop a contracted dimension, and products as terms.
  }];
  let methods = [
    InterfaceMethod<"The sizes of those loops, the outermost first.",
      "::llvm::SmallVector<int64_t>", "getReducedSizes">,
    InterfaceMethod<"How terms are combined.", "::partita::nn::ReduceKind", "getReduceKind">,
    InterfaceMethod<[{
        Emits the term at `position` of the result and `reduced` of the loops, as
        an element of type `wide`. It is `neutral`, of the signless type of
        `wide`, outside of the operands.
      }], "::mlir::Value", "emitTerm",
      (ins "::mlir::OpBuilder &":$builder, "::partita::nn::ElementEmitter &":$emitter,
           "::llvm::ArrayRef<::partita::nn::Index>":$position, "::llvm::ArrayRef<::partita::nn::Index>":$reduced,
           "::mlir::TypedAttr":$neutral, "::mlir::Type":$wide)>
  ];
}

def NN_ShardableOpInterface : OpInterface<"ShardableOpInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    The op's sharding rule in factors, as Shardy writes them: a matmul is
    `([i,k],[k,j])->([i,j]) reduction={k}`, a reshape `([ij])->([i,j])`; and the
    op that each shard computes.
  }];
  let methods = [
    InterfaceMethod<"The factors of every dimension of every operand and result.",
      "::partita::nn::ShardingRule", "getShardingRule">,
    InterfaceMethod<[{
        Builds the op that one shard computes. `rule` is this op's; `shards[f]`
        says into how many equal parts factor f is cut: 1, or a divisor of its
        size where the factor can be cut. `operands` are the shard's parts. The
        op is the same for every shard.
      }], "::mlir::Operation *", "buildLocal",
      (ins "::mlir::OpBuilder &":$builder, "const ::partita::nn::ShardingRule &":$rule,
           "::llvm::ArrayRef<int64_t>":$shards, "::mlir::ValueRange":$operands),
      /*methodBody=*/"", /*defaultImplementation=*/[{
        return ::partita::nn::buildLocalLike(builder, $_op.getOperation(), rule, shards, operands);
      }]>
  ];
}

def NN_ViewOpInterface : OpInterface<"ViewOpInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    An op whose result has elements of its one operand, in an order that strides
    can say: it need not be computed where its reader takes strides.
  }];
  let methods = [
    InterfaceMethod<"How the result lies in bytes in which the operand lies so; nothing if strides cannot say it.",
      "::std::optional<::partita::nn::StridedLayout>", "getResultLayout",
      (ins "const ::partita::nn::StridedLayout &":$operand)>,
    InterfaceMethod<[{
        How the operand lies in bytes in which the result is to lie so; nothing
        if strides cannot say it, or the result has not each element once.
      }], "::std::optional<::partita::nn::StridedLayout>", "getOperandLayout",
      (ins "const ::partita::nn::StridedLayout &":$result),
      /*methodBody=*/"", /*defaultImplementation=*/"return ::std::nullopt;">,
    InterfaceMethod<"Whether the result has each element of the operand exactly once.",
      "bool", "keepsElements", (ins), /*methodBody=*/"", /*defaultImplementation=*/"return false;">
  ];
}

def NN_DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    The op's vector-Jacobian product, written with ops of this dialect.
  }];
  let methods = [
    InterfaceMethod<[{
        Given the cotangents of the results, appends one cotangent an operand to
        `operandCotangents` (null where an operand has no derivative).
      }], "::llvm::LogicalResult", "buildVjp",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$cotangents,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$operandCotangents)>,
    InterfaceMethod<"Operands and results that `buildVjp` reads, and that must therefore be kept.",
      "::llvm::SmallVector<::mlir::Value>", "getResidualsForVjp">
  ];
}

def NN_PermutableOpInterface : OpInterface<"PermutableOpInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    An op f that commutes with a transpose of its tensors:
    `transpose(f(x), perm) = f'(transpose(x, perm))`, where f' is f with its
    dimension attributes renamed. By it layouts move through a graph.
  }];
  let methods = [
    InterfaceMethod<[{
        Whether f' exists for this permutation (`perm[i]` is the old dimension at
        the new position i) and all operands that `isPermuted` names.
      }], "bool", "canPermute", (ins "::llvm::ArrayRef<int64_t>":$perm),
      /*methodBody=*/"", /*defaultImplementation=*/"return true;">,
    InterfaceMethod<"Whether this operand must be transposed too (an index or scalar operand need not).",
      "bool", "isPermuted", (ins "unsigned":$operandNumber),
      /*methodBody=*/"", /*defaultImplementation=*/"return true;">,
    InterfaceMethod<[{
        Builds f' on `operands`, of which those that `isPermuted` names are
        already transposed.
      }], "::mlir::Operation *", "buildPermuted",
      (ins "::mlir::OpBuilder &":$builder, "::llvm::ArrayRef<int64_t>":$perm,
           "::mlir::ValueRange":$operands)>
  ];
}

def NN_LoweringAttrInterface : AttrInterface<"LoweringAttrInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    How a cluster is computed. The plan dialect has one for each kind of device
    code; a phase that places or counts clusters asks here.
  }];
  let methods = [
    InterfaceMethod<"What computes a cluster that is lowered so.",
      "::partita::nn::ClusterKind", "getClusterKind">,
    InterfaceMethod<[{
        Pairs (operand, result) that may share their bytes: an element of the
        operand is not read any more when that of the result is written.
      }], "::llvm::SmallVector<std::pair<unsigned, unsigned>>", "getInPlacePairs">
  ];
}

#endif // PARTITA_DIALECTS_NN_NNINTERFACES_TD
