//===- NNInterfaces.h - What passes ask of ops ------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_NNINTERFACES_H
#define PARTITA_DIALECTS_NN_NNINTERFACES_H

#include "dialects/nn/StridedLayout.h"
#include "dialects/nn/emit/ElementEmitter.h"
#include "dialects/nn/shard/ShardingRule.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OpDefinition.h"

namespace partita::nn {

/// The kind of work. A machine model chooses a rate by it.
enum class CostKind {
  movement,
  pointwise,
  reduction,
  dot,
  conv,
  attention,
  recurrent,
  none
};

/// Cost of one execution of an op.
struct Cost {
  int64_t flops = 0; ///< operations on elements
  int64_t bytes = 0; ///< read and written, if nothing is fused
  CostKind kind = CostKind::none;
  /// The op only says where its elements come from (a view) or what they are (a
  /// constant). A reader of its result can do the same itself, at no cost.
  bool free = false;
  /// The part of `flops` in which each operation waits for the one before it.
  int64_t sequential = 0;
};

/// Whether a pointwise op is computed by a polynomial or a library function. To
/// compute it twice costs more than to keep its result.
bool isTranscendental(mlir::Operation *op);
/// Whether the op is a division, a root or the like, which costs several times
/// as much as an addition.
bool isDivision(mlir::Operation *op);

/// Bytes of all operands and results.
int64_t getTouchedBytes(mlir::Operation *op);
/// The cost of an op that reads all operands and writes all results.
Cost makeCost(mlir::Operation *op, int64_t flops, CostKind kind);

/// Used by the TableGen class of pointwise ops; see NNPointwise.td.
Cost pointwiseCost(mlir::Operation *op);
mlir::Operation *buildPermutedLike(mlir::OpBuilder &builder,
                                   mlir::Operation *op,
                                   llvm::ArrayRef<int64_t> perm,
                                   mlir::ValueRange operands);
/// Evaluates the op with its own `emitScalar`, if all operands are constants of
/// at most `kMaxFoldedElements` elements.
mlir::OpFoldResult foldPointwise(mlir::Operation *op,
                                 llvm::ArrayRef<mlir::Attribute> operands);
inline constexpr int64_t kMaxFoldedElements = 4096;

namespace grad {
class Term;
/// A cotangent for each operand of an op, or null.
using Cotangents = llvm::SmallVector<mlir::Value>;
} // namespace grad

/// An op whose results have the rate of a micro-batch, whatever its operands
/// are computed from: the load program cannot compute it.
template <typename ConcreteOp>
class EveryMicroBatch
    : public mlir::OpTrait::TraitBase<ConcreteOp, EveryMicroBatch> {};

} // namespace partita::nn

#include "dialects/nn/NNAttrInterfaces.h.inc"
#include "dialects/nn/NNInterfaces.h.inc"

#endif // PARTITA_DIALECTS_NN_NNINTERFACES_H
