//===- NNInterfaces.td - What passes ask of ops --------------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pass that names more than two concrete ops lacks an interface, which
// belongs here.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_NNINTERFACES_TD
#define PARTITA_DIALECTS_NN_NNINTERFACES_TD

include "mlir/IR/OpBase.td"

def NN_EveryMicroBatch : NativeOpTrait<"EveryMicroBatch"> {
  let cppNamespace = "::partita::nn";
}

def NN_CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    The cost of an op, from its types alone: floating-point (or integer)
    operations, bytes read and written if nothing is fused, and the kind of
    work. A machine model chooses a rate by the kind of work, and computes the
    time.
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
    signless scalars. Code generation, constant folding and the documentation of
    the op's semantics all use it.
  }];
  let methods = [
    InterfaceMethod<
      "Emits the function of one element. `operands` are signless scalars (`ui8` arrives as `i8`). The result must be signless too.",
      "::mlir::Value", "emitScalar",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::ValueRange":$operands)>,
    InterfaceMethod<
      "The number of operations for one element of the result. A function that is computed by a polynomial counts as the number of its terms.",
      "int64_t", "getFlopsPerElement", (ins), "", "return 1;">
  ];
}

def NN_IndexedOpInterface : OpInterface<"IndexedOpInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    An op whose element is an element of an operand, or a function of its own
    position. The position in the operand depends on the position in the result,
    and perhaps on elements of another operand. Code generation needs no pass
    over memory for the op.
  }];
  let methods = [
    InterfaceMethod<"Emits the element at `position`, which has one index per dimension. Null, with an error, if an operand is not understood.",
      "::mlir::Value", "emitElement",
      (ins "::mlir::OpBuilder &":$builder, "::partita::nn::ElementEmitter &":$emitter,
           "::llvm::ArrayRef<::partita::nn::Index>":$position)>,
    InterfaceMethod<"Whether the element is one element of one operand, at a position that other operands give.",
      "bool", "readsComputedPlace", (ins), /*methodBody=*/"", /*defaultImplementation=*/"return false;">
  ];
}

def NN_RowwiseOpInterface : OpInterface<"RowwiseOpInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    An op that reads its operand row by row. A row is all elements along some
    dimensions, at one position of the other dimensions. The op gives an
    element, or a row, for each row.
  }];
  let methods = [
    InterfaceMethod<"The dimensions that make a row.", "::llvm::SmallVector<int64_t>", "getRowDims">
  ];
}

def NN_ReductionOpInterface : OpInterface<"ReductionOpInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    An op whose element combines many terms, one for each iteration of some
    reduction loops. For example, a dot has one reduction loop per contracted
    dimension, and its terms are products.
  }];
  let methods = [
    InterfaceMethod<"The sizes of the reduction loops, the outermost first.",
      "::llvm::SmallVector<int64_t>", "getReducedSizes">,
    InterfaceMethod<"How terms are combined.", "::partita::nn::ReduceKind", "getReduceKind", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/[{
        if constexpr (requires { $_op.getKind(); })
          return $_op.getKind();
        else
          return ::partita::nn::ReduceKind::sum;
      }]>,
    InterfaceMethod<[{
        Emits the term at `position` of the result and iteration `reduced` of
        the reduction loops, as an element of type `wide`. Outside of the
        operands the term is `neutral`, which has the signless type of `wide`.
      }], "::mlir::Value", "emitTerm",
      (ins "::mlir::OpBuilder &":$builder, "::partita::nn::ElementEmitter &":$emitter,
           "::llvm::ArrayRef<::partita::nn::Index>":$position, "::llvm::ArrayRef<::partita::nn::Index>":$reduced,
           "::mlir::TypedAttr":$neutral, "::mlir::Type":$wide)>
  ];
}

def NN_ShardableOpInterface : OpInterface<"ShardableOpInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    The op's sharding rule, and the op that each shard computes. A rule consists
    of factors, as in Shardy. A matmul has
    `([i,k],[k,j])->([i,j]) reduction={k}`, a reshape has `([ij])->([i,j])`.
  }];
  let methods = [
    InterfaceMethod<"The factors of every dimension of every operand and result.",
      "::partita::nn::ShardingRule", "getShardingRule">,
    InterfaceMethod<[{
        Builds the op that one shard computes. `rule` is this op's rule.
        `sizes[f]` is the size of the shard's part of factor f: all of it, or a
        divisor if the factor can be cut, or any part of it if it can be padded.
        `operands` are the shard's parts. `begins[f]` is
        where the shard's part of a factor begins that is cut and has
        `needs_begin`: a scalar of `i64`. It is null for other factors. The op
        is the same for every shard.
      }], "::mlir::Operation *", "buildLocal",
      (ins "::mlir::OpBuilder &":$builder, "const ::partita::nn::ShardingRule &":$rule,
           "::llvm::ArrayRef<int64_t>":$sizes, "::mlir::ValueRange":$operands, "::llvm::ArrayRef<::mlir::Value>":$begins),
      /*methodBody=*/"", /*defaultImplementation=*/[{
        return ::partita::nn::buildLocalLike(builder, $_op.getOperation(), rule, sizes, operands);
      }]>
  ];
}

def NN_ViewOpInterface : OpInterface<"ViewOpInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    An op whose result has elements of its one operand, in an order that strides
    can express. The op need not be computed if its reader takes strides.
  }];
  let methods = [
    InterfaceMethod<"The layout of the result in the bytes of an operand with the given layout. Nothing if strides cannot express it.",
      "::std::optional<::partita::nn::StridedLayout>", "getResultLayout",
      (ins "const ::partita::nn::StridedLayout &":$operand)>,
    InterfaceMethod<[{
        The layout of the operand in the bytes of a result with the given
        layout. Nothing if strides cannot express it, or if the result does not
        have each element of the operand exactly once.
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
    The op's vector-Jacobian product, written with ops of this dialect. What it
    reads of operands and results is what a step keeps for it, so it reads the
    result where that suffices (`exp`: `dy * y`). An op without this interface
    has no derivative, or one that is not known.
  }];
  let methods = [
    InterfaceMethod<[{
        Given the cotangent of the op's one result, gives one cotangent for each
        operand, of its type. It is null if the derivative to an operand is zero
        everywhere, as that of an index. Fails, without a message, if this op
        has no derivative that is known, whatever others of its kind have. What
        nobody reads is removed later.
      }], "::llvm::FailureOr<::partita::nn::grad::Cotangents>", "buildVjp",
      (ins "const ::partita::nn::grad::Term &":$cotangent)>
  ];
}

def NN_PermutableOpInterface : OpInterface<"PermutableOpInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    An op f that commutes with a transpose of its tensors:
    `transpose(f(x), perm) = f'(transpose(x, perm))`, where f' is f with its
    dimension attributes renamed. Passes move layouts through a graph with it.
    The attribute `dim` is a dimension and `dims` a list of them; any other list
    of integers has an entry for each dimension.
  }];
  let methods = [
    InterfaceMethod<[{
        Whether f' exists if all operands that `isPermuted` names are permuted.
        `perm[i]` is the old dimension at the new position i.
      }], "bool", "canPermute", (ins "::llvm::ArrayRef<int64_t>":$perm),
      /*methodBody=*/"", /*defaultImplementation=*/"return true;">,
    InterfaceMethod<"Whether this operand must be transposed too. An index or scalar operand need not.",
      "bool", "isPermuted", (ins "unsigned":$operandNumber),
      /*methodBody=*/"", /*defaultImplementation=*/"return true;">
  ];
  let extraClassDeclaration = [{
    /// Builds f' on `operands`. Those that `isPermuted` names are already
    /// transposed.
    ::mlir::Operation *buildPermuted(::mlir::OpBuilder &builder, ::llvm::ArrayRef<int64_t> perm,
                                     ::mlir::ValueRange operands);
  }];
}

def NN_LoweringAttrInterface : AttrInterface<"LoweringAttrInterface"> {
  let cppNamespace = "::partita::nn";
  let description = [{
    How a cluster is computed. The plan dialect has one such attribute for each
    kind of device code. Phases that place or count clusters use this interface.
  }];
  let methods = [
    InterfaceMethod<"Whether a kernel or a library call computes the cluster.",
      "::partita::nn::ClusterKind", "getClusterKind">,
    InterfaceMethod<[{
        Pairs (operand, result) that may share their bytes. Nothing reads an
        element of the operand after the same element of the result is written.
      }], "::llvm::SmallVector<std::pair<unsigned, unsigned>>", "getInPlacePairs">
  ];
}

#endif // PARTITA_DIALECTS_NN_NNINTERFACES_TD
