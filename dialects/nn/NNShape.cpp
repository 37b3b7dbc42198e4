//===- NNShape.cpp - Ops that move elements -------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"

#include "dialects/support/Try.h"

using namespace mlir;

namespace partita::nn {

//===----------------------------------------------------------------------===//
// What several verifiers say
//===----------------------------------------------------------------------===//

static LogicalResult verifySameElementType(Operation *op) {
  Type from = getElementTypeOrSelf(op->getOperand(0));
  Type to = getElementTypeOrSelf(op->getResult(0));
  if (from != to)
    return op->emitOpError("turns elements of type ")
           << from << " into elements of type " << to;
  return success();
}

/// The shape of the result, and that it has elements of the first operand.
static LogicalResult verifyResult(Operation *op, ArrayRef<int64_t> expected) {
  ArrayRef<int64_t> shape = getTensorType(op->getResult(0)).getShape();
  if (shape != expected)
    return op->emitOpError("result has shape [")
           << shape << "] instead of [" << expected << "]";
  return verifySameElementType(op);
}

static LogicalResult verifyEntries(Operation *op, StringRef name,
                                   ArrayRef<int64_t> values, int64_t rank) {
  if (static_cast<int64_t>(values.size()) != rank)
    return op->emitOpError("needs one entry of '")
           << name << "' for each of the " << rank << " dimensions, but has "
           << values.size();
  return success();
}

LogicalResult verifyDim(Operation *op, int64_t dim, int64_t rank) {
  if (dim < 0 || dim >= rank)
    return op->emitOpError("names dimension ")
           << dim << " of a tensor with " << rank << " dimensions";
  return success();
}

static Cost movementCost(int64_t bytes, bool free = false) {
  return {/*flops=*/0, bytes, CostKind::movement, free};
}

//===----------------------------------------------------------------------===//
// Reshape, transpose, broadcast
//===----------------------------------------------------------------------===//

LogicalResult ReshapeOp::verify() {
  RankedTensorType from = getX().getType(), to = getType();
  if (from.getNumElements() != to.getNumElements()) // C1
    return emitOpError("turns ")
           << from.getNumElements() << " elements into " << to.getNumElements();
  return verifySameElementType(*this); // C2
}

Cost ReshapeOp::getCost() { return movementCost(0, /*free=*/true); }

LogicalResult TransposeOp::verify() {
  RankedTensorType from = getX().getType();
  if (!isPermutation(getPermutation(), from.getRank())) // C1
    return emitOpError("[") << getPermutation() << "] is not a permutation of "
                            << from.getRank() << " dimensions";
  return verifyResult(*this, permuted(from.getShape(), getPermutation())); // C2
}

Cost TransposeOp::getCost() { return movementCost(2 * getByteSize(getType())); }

void TransposeOp::build(OpBuilder &builder, OperationState &state, Value x,
                        ArrayRef<int64_t> permutation) {
  auto type = cast<RankedTensorType>(x.getType());
  build(builder, state,
        RankedTensorType::get(permuted(type.getShape(), permutation),
                              type.getElementType()),
        x, permutation);
}

LogicalResult BroadcastOp::verify() {
  RankedTensorType from = getX().getType(), to = getType();
  ArrayRef<int64_t> dims = getDims();
  PARTITA_TRY(verifyEntries(*this, "dims", dims, from.getRank())); // C1
  for (auto [i, dim] : llvm::enumerate(dims)) {
    PARTITA_TRY(verifyDim(*this, dim, to.getRank()));
    if (i > 0 && dims[i - 1] >= dim)
      return emitOpError("needs increasing dimensions, not [") << dims << "]";
    int64_t size = from.getDimSize(i);
    if (size != 1 && size != to.getDimSize(dim)) // C2
      return emitOpError("cannot repeat dimension ")
             << i << " of size " << size << " to size " << to.getDimSize(dim);
  }
  return verifySameElementType(*this); // C3
}

Cost BroadcastOp::getCost() {
  return movementCost(getTouchedBytes(*this), /*free=*/true);
}

//===----------------------------------------------------------------------===//
// Slice, reverse, pad
//===----------------------------------------------------------------------===//

LogicalResult SliceOp::verify() {
  RankedTensorType from = getX().getType();
  int64_t rank = from.getRank();
  PARTITA_TRY(verifyEntries(*this, "starts", getStarts(), rank)); // C1
  PARTITA_TRY(verifyEntries(*this, "limits", getLimits(), rank));
  PARTITA_TRY(verifyEntries(*this, "strides", getStrides(), rank));
  SmallVector<int64_t> shape;
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t start = getStarts()[dim], limit = getLimits()[dim];
    int64_t stride = getStrides()[dim];
    if (start < 0 || start > limit || limit > from.getDimSize(dim) ||
        stride < 1) // C2
      return emitOpError("cannot take elements ")
             << start << " to " << limit << " by " << stride << " of dimension "
             << dim << " of size " << from.getDimSize(dim);
    shape.push_back((limit - start + stride - 1) / stride);
  }
  return verifyResult(*this, shape); // C3
}

Cost SliceOp::getCost() {
  return movementCost(2 * getByteSize(getType()), /*free=*/true);
}

LogicalResult ReverseOp::verify() {
  int64_t rank = getType().getRank();
  SmallVector<bool> seen(rank, false);
  for (int64_t dim : getDims()) { // C1
    PARTITA_TRY(verifyDim(*this, dim, rank));
    if (seen[dim])
      return emitOpError("names dimension ") << dim << " twice";
    seen[dim] = true;
  }
  return success();
}

Cost ReverseOp::getCost() { return movementCost(2 * getByteSize(getType())); }

LogicalResult PadOp::verify() {
  RankedTensorType from = getX().getType();
  PARTITA_TRY(verifyEntries(*this, "low", getLow(), from.getRank())); // C1
  PARTITA_TRY(verifyEntries(*this, "high", getHigh(), from.getRank()));
  SmallVector<int64_t> shape;
  for (auto [low, size, high] :
       llvm::zip_equal(getLow(), from.getShape(), getHigh())) {
    if (low < 0 || high < 0)
      return emitOpError("cannot have a border of negative width");
    shape.push_back(low + size + high);
  }
  PARTITA_TRY(verifyResult(*this, shape)); // C2
  RankedTensorType value = getValue().getType();
  if (value.getRank() != 0 ||
      value.getElementType() != from.getElementType()) // C3
    return emitOpError("needs a scalar of type ")
           << from.getElementType() << " for the border, not " << value;
  return success();
}

Cost PadOp::getCost() {
  return movementCost(getByteSize(getX().getType()) + getByteSize(getType()));
}

bool PadOp::isPermuted(unsigned operandNumber) { return operandNumber == 0; }

//===----------------------------------------------------------------------===//
// Concat, gather, iota
//===----------------------------------------------------------------------===//

LogicalResult ConcatOp::verify() {
  if (getOperands().empty()) // C1
    return emitOpError("needs at least one operand");
  RankedTensorType to = getType();
  int64_t dim = getDim();
  PARTITA_TRY(verifyDim(*this, dim, to.getRank()));
  int64_t size = 0;
  for (Value operand : getOperands()) {
    auto from = cast<RankedTensorType>(operand.getType());
    bool agrees = from.getRank() == to.getRank() &&
                  from.getElementType() == to.getElementType();
    for (int64_t d = 0; agrees && d < to.getRank(); ++d)
      agrees = d == dim || from.getDimSize(d) == to.getDimSize(d);
    if (!agrees) // C2
      return emitOpError("cannot make ")
             << to << " of " << from << " along dimension " << dim;
    size += from.getDimSize(dim);
  }
  if (size != to.getDimSize(dim)) // C3
    return emitOpError("has operands of ")
           << size << " elements along dimension " << dim
           << ", but a result of " << to.getDimSize(dim);
  return success();
}

Cost ConcatOp::getCost() { return movementCost(2 * getByteSize(getType())); }

LogicalResult GatherOp::verify() {
  RankedTensorType from = getX().getType();
  int64_t dim = getDim();
  PARTITA_TRY(verifyDim(*this, dim, from.getRank())); // C1
  if (from.getDimSize(dim) == 0 && getType().getNumElements() != 0)
    return emitOpError("chooses from dimension ") << dim << ", which is empty";
  SmallVector<int64_t> shape(from.getShape().take_front(dim));
  llvm::append_range(shape, getIndices().getType().getShape());
  llvm::append_range(shape, from.getShape().drop_front(dim + 1));
  return verifyResult(*this, shape); // C2
}

Cost GatherOp::getCost() {
  return movementCost(getByteSize(getIndices().getType()) +
                      2 * getByteSize(getType()));
}

bool GatherOp::readsComputedPlace() { return true; }

bool GatherOp::isPermuted(unsigned operandNumber) { return operandNumber == 0; }

/// Only with a list of indices has the result the dimensions of `x`.
bool GatherOp::canPermute(ArrayRef<int64_t>) {
  return getIndices().getType().getRank() == 1;
}

LogicalResult GatherElementsOp::verify() {
  RankedTensorType from = getX().getType(), at = getIndices().getType();
  int64_t dim = getDim();
  PARTITA_TRY(verifyDim(*this, dim, from.getRank())); // C1
  if (from.getDimSize(dim) == 0 && getType().getNumElements() != 0)
    return emitOpError("chooses from dimension ") << dim << ", which is empty";
  bool fits = at.getRank() == from.getRank();
  for (int64_t d = 0; fits && d < at.getRank(); ++d)
    fits = d == dim || at.getDimSize(d) <= from.getDimSize(d);
  if (!fits) // C2
    return emitOpError("cannot choose from ")
           << from << " along dimension " << dim << " with indices " << at;
  return verifyResult(*this, at.getShape()); // C3
}

bool GatherElementsOp::readsComputedPlace() { return true; }

Cost GatherElementsOp::getCost() {
  return movementCost(getByteSize(getIndices().getType()) +
                      2 * getByteSize(getType()));
}

LogicalResult IotaOp::verify() {
  return verifyDim(*this, getDim(), getType().getRank()); // C1
}

Cost IotaOp::getCost() {
  return movementCost(getByteSize(getType()), /*free=*/true);
}

} // namespace partita::nn
