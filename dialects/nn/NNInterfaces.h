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
#include "mlir/IR/OpDefinition.h"

namespace partita::nn {

/// The kind of work, by which a machine model chooses a rate.
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
  /// Only says where elements come from, or what they are: whoever reads the
  /// result can do so himself, at no cost.
  bool free = false;
  /// Of `flops`, those of which each waits for the one before it.
  int64_t sequential = 0;
};

/// Whether a pointwise op is computed by a polynomial or a library's function,
/// so that computing it twice costs more than keeping its result.
bool isTranscendental(mlir::Operation *op);
/// Whether it is a division, a root or the like: several times an addition.
bool isDivision(mlir::Operation *op);

/// What the class of pointwise ops is made of; see NNPointwise.td.
Cost pointwiseCost(mlir::Operation *op);
mlir::Operation *buildPermutedLike(mlir::OpBuilder &builder,
                                   mlir::Operation *op,
                                   llvm::ArrayRef<int64_t> perm,
                                   mlir::ValueRange operands);
/// Evaluates the op if all operands are constants of at most
/// `kMaxFoldedElements` elements, by its own `emitScalar`.
mlir::OpFoldResult foldPointwise(mlir::Operation *op,
                                 llvm::ArrayRef<mlir::Attribute> operands);
inline constexpr int64_t kMaxFoldedElements = 4096;

} // namespace partita::nn

#include "dialects/nn/NNAttrInterfaces.h.inc"
#include "dialects/nn/NNInterfaces.h.inc"

#endif // PARTITA_DIALECTS_NN_NNINTERFACES_H
