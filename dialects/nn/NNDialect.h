//===- NNDialect.h - The nn dialect -----------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_NNDIALECT_H
#define PARTITA_DIALECTS_NN_NNDIALECT_H

#include "dialects/nn/NNInterfaces.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/nn/NNDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/nn/NNAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/nn/NNOps.h.inc"

namespace partita::nn {

/// Names of the dialect's discardable attributes.
inline constexpr llvm::StringLiteral kNameAttr = "nn.name";
inline constexpr llvm::StringLiteral kBatchAxisAttr = "nn.batch_axis";
inline constexpr llvm::StringLiteral kStateAttr = "nn.state";
inline constexpr llvm::StringLiteral kRoleAttr = "nn.role";
inline constexpr llvm::StringLiteral kCarriedAttr = "nn.carried";
inline constexpr llvm::StringLiteral kRingDimAttr = "nn.ring_dim";
inline constexpr llvm::StringLiteral kRingPlaceAttr = "nn.ring_place";
inline constexpr llvm::StringLiteral kOnHostAttr = "nn.on_host";
inline constexpr llvm::StringLiteral kPerStepAttr = "nn.per_step";
inline constexpr llvm::StringLiteral kClusterAttr = "nn.cluster";
inline constexpr llvm::StringLiteral kAccumulateAttr = "nn.accumulate";
inline constexpr llvm::StringLiteral kWinogradAttr = "nn.winograd";

/// The type of a value that is a tensor, as all values of the dialect are.
inline mlir::RankedTensorType getTensorType(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

/// Bytes of a tensor in memory. An element narrower than a byte takes one byte.
int64_t getByteSize(mlir::Type type);

/// Whether a product of these types multiplies integers of 8 bits and sums them
/// as i32. The integers of its right side are signed.
bool isIntegerProduct(mlir::Type x, mlir::Type weights);
/// Whether the op is such a product.
bool multipliesIntegers(mlir::Operation *op);

/// Numbers of 2, 4 or 8 bits: the last dimension grows by 8 / bits. The first
/// number of a byte (ui8) is in its lowest bits.
mlir::Value unpack(mlir::OpBuilder &builder, mlir::Location loc,
                   mlir::Value bytes, int64_t bits);
/// Replaces a product with packed weights by the product with the floats that
/// they stand for.
void expand(PackedDotOp op);
/// Replaces it by a product with gathered weights.
void expand(ExpertDotOp op);
/// Replaces it by a product that has dy for each expert, or zeros.
void expand(ExpertOuterOp op);
/// Replaces it by a choice between the update and what is there.
void expand(UpdateSliceOp op);

/// The signless type in which code generation holds an element of `type`: `i8`
/// for `ui8`. It is also `i8` for every type that is stored in a byte of its
/// own, such as `i4` and `f8E5M2`; a narrow signed integer is sign-extended.
/// Any other type stays the same.
mlir::Type getSignlessType(mlir::Type type);

/// The neutral element of a reduction, as an attribute of the signless type of
/// `elementType`. It is 0 for sum and 1 for prod, -infinity or the lowest
/// integer for max, and infinity or the highest integer for min.
mlir::TypedAttr getNeutralElement(ReduceKind kind, mlir::Type elementType);

/// The number of positions of a window that slides over a dimension; 0 if it
/// never fits.
int64_t getWindowedSize(int64_t size, int64_t low, int64_t high, int64_t window,
                        int64_t dilation, int64_t stride);

/// The list `values[perm[0]], values[perm[1]], ...`.
llvm::SmallVector<int64_t> permuted(llvm::ArrayRef<int64_t> values,
                                    llvm::ArrayRef<int64_t> perm);
bool isPermutation(llvm::ArrayRef<int64_t> values, int64_t rank);

/// Of a factor of a product: the dimensions that are neither batch nor
/// contracted, in order.
llvm::SmallVector<int64_t> getFreeDims(int64_t rank,
                                       llvm::ArrayRef<int64_t> batch,
                                       llvm::ArrayRef<int64_t> contract);

/// Whether tensors with `rank` dimensions have `dim`; if not, with a message.
llvm::LogicalResult verifyDim(mlir::Operation *op, int64_t dim, int64_t rank);

/// The name of an op in messages: the ONNX node names in its location, joined
/// by "+" (the first few, then "..."), or else the op's own name. A location
/// without names gives "".
std::string getNodeName(mlir::Location loc);
std::string getNodeName(mlir::Operation *op);

} // namespace partita::nn

#endif // PARTITA_DIALECTS_NN_NNDIALECT_H
