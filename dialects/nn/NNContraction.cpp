//===- NNContraction.cpp - Dot, convolution, attention --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"

#include <numeric>

using namespace mlir;

namespace partita::nn {

//===----------------------------------------------------------------------===//
// Dot
//===----------------------------------------------------------------------===//

/// The dimensions of an operand that are neither batch nor contracted.
static SmallVector<int64_t> getFreeDims(int64_t rank, ArrayRef<int64_t> batch,
                                        ArrayRef<int64_t> contract) {
  SmallVector<int64_t> free;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
      free.push_back(dim);
  return free;
}

static LogicalResult verifyNamedDims(DotOp op, StringRef name, int64_t rank,
                                     ArrayRef<int64_t> batch,
                                     ArrayRef<int64_t> contract) {
  SmallVector<bool> seen(rank, false);
  for (int64_t dim : llvm::concat<const int64_t>(batch, contract)) {
    if (dim < 0 || dim >= rank)
      return op.emitOpError("names dimension ")
             << dim << " of " << name << ", which has " << rank
             << " dimensions";
    if (seen[dim])
      return op.emitOpError("names dimension ")
             << dim << " of " << name << " twice";
    seen[dim] = true;
  }
  return success();
}

bool isIntegerProduct(Type x, Type weights) {
  x = getElementTypeOrSelf(x);
  weights = getElementTypeOrSelf(weights);
  return (x.isSignlessInteger(8) || x.isUnsignedInteger(8)) &&
         weights.isSignlessInteger(8);
}

bool multipliesIntegers(Operation *op) {
  return isa<DotOp, ConvOp>(op) &&
         isIntegerProduct(op->getOperand(0).getType(),
                          op->getOperand(1).getType()) &&
         getElementTypeOrSelf(op->getResult(0)).isSignlessInteger(32);
}

static bool fitTogether(RankedTensorType x, RankedTensorType weights,
                        RankedTensorType result) {
  Type element = result.getElementType();
  if (x.getElementType() == element && weights.getElementType() == element)
    return true;
  return isIntegerProduct(x, weights) && element.isSignlessInteger(32);
}

LogicalResult DotOp::verify() {
  RankedTensorType lhs = getLhs().getType(), rhs = getRhs().getType();
  if (getLhsBatch().size() != getRhsBatch().size() ||
      getLhsContract().size() != getRhsContract().size()) // C1
    return emitOpError("needs as many batch and contracted dimensions of lhs "
                       "as of rhs");
  if (failed(verifyNamedDims(*this, "lhs", lhs.getRank(), getLhsBatch(),
                             getLhsContract())) || // C2
      failed(verifyNamedDims(*this, "rhs", rhs.getRank(), getRhsBatch(),
                             getRhsContract())))
    return failure();
  auto sameSize = [&](ArrayRef<int64_t> lhsDims, ArrayRef<int64_t> rhsDims) {
    return permuted(lhs.getShape(), lhsDims) ==
           permuted(rhs.getShape(), rhsDims);
  };
  if (!sameSize(getLhsBatch(), getRhsBatch()) ||
      !sameSize(getLhsContract(), getRhsContract())) // C3
    return emitOpError("has batch or contracted dimensions of different sizes "
                       "in ")
           << lhs << " and " << rhs;
  SmallVector<int64_t> shape = permuted(lhs.getShape(), getLhsBatch());
  llvm::append_range(
      shape, permuted(lhs.getShape(), getFreeDims(lhs.getRank(), getLhsBatch(),
                                                  getLhsContract())));
  llvm::append_range(
      shape, permuted(rhs.getShape(), getFreeDims(rhs.getRank(), getRhsBatch(),
                                                  getRhsContract())));
  if (getType().getShape() != ArrayRef<int64_t>(shape)) // C4
    return emitOpError("result has shape [")
           << getType().getShape() << "] instead of [" << shape << "]";
  if (!fitTogether(lhs, rhs, getType())) // C5
    return emitOpError("needs one element type, or integers of 8 bits and "
                       "their sums, not ")
           << lhs.getElementType() << ", " << rhs.getElementType() << " and "
           << getType().getElementType();
  return success();
}

Cost DotOp::getCost() {
  int64_t depth = 1;
  for (int64_t dim : getLhsContract())
    depth *= getLhs().getType().getDimSize(dim);
  return {2 * depth * getType().getNumElements(),
          getByteSize(getLhs().getType()) + getByteSize(getRhs().getType()) +
              getByteSize(getType()),
          CostKind::dot};
}

//===----------------------------------------------------------------------===//
// Conv
//===----------------------------------------------------------------------===//

/// `op`: a convolution, or a derivative of one, with these tensors.
template <typename Op>
static LogicalResult verifyConv(Op op, RankedTensorType x,
                                RankedTensorType weights,
                                RankedTensorType result) {
  int64_t rank = x.getRank();
  if (rank < 3 || weights.getRank() != rank || result.getRank() != rank ||
      !fitTogether(x, weights, result)) // C1
    return op.emitOpError(
               "needs operands and a result of one rank of at least 3 "
               "and one element type, or integers of 8 bits and their "
               "sums, not ")
           << x << ", " << weights << " and " << result;
  size_t spatial = rank - 2;
  if (op.getStrides().size() != spatial ||
      op.getDilations().size() != spatial ||
      op.getPadsLow().size() != spatial ||
      op.getPadsHigh().size() != spatial) // C2
    return op.emitOpError(
               "needs one stride, dilation and pair of pads for each "
               "of the ")
           << spatial << " spatial dimensions";
  auto isPositive = [](int64_t v) { return v >= 1; };
  if (!llvm::all_of(op.getStrides(), isPositive) ||
      !llvm::all_of(op.getDilations(), isPositive))
    return op.emitOpError("needs strides and dilations of at least 1");
  int64_t groups = op.getGroups(), channels = x.getDimSize(op.getChannelDim());
  int64_t outChannels = weights.getDimSize(0);
  if (groups < 1 || channels % groups != 0 || outChannels % groups != 0 ||
      weights.getDimSize(1) != channels / groups) // C3
    return op.emitOpError("cannot divide ")
           << channels << " input and " << outChannels
           << " output channels into " << groups << " groups with weights of "
           << weights.getDimSize(1) << " input channels";
  SmallVector<int64_t> shape(rank);
  shape[0] = x.getDimSize(0);
  shape[op.getChannelDim()] = outChannels;
  for (size_t i = 0; i < spatial; ++i) {
    int64_t dim = op.getFirstSpatialDim() + i;
    shape[dim] = getWindowedSize(x.getDimSize(dim), op.getPadsLow()[i],
                                 op.getPadsHigh()[i], weights.getDimSize(2 + i),
                                 op.getDilations()[i], op.getStrides()[i]);
  }
  if (result.getShape() != ArrayRef<int64_t>(shape)) // C4
    return op.emitOpError("result has shape [")
           << result.getShape() << "] instead of [" << shape << "]";
  return success();
}

LogicalResult ConvOp::verify() {
  return verifyConv(*this, getX().getType(), getWeights().getType(), getType());
}

Cost ConvOp::getCost() {
  RankedTensorType weights = getWeights().getType();
  int64_t outChannels = std::max<int64_t>(weights.getDimSize(0), 1);
  int64_t perElement = weights.getNumElements() / outChannels;
  return {2 * perElement * getType().getNumElements(),
          getByteSize(getX().getType()) + getByteSize(weights) +
              getByteSize(getType()),
          CostKind::conv};
}

LogicalResult ConvDxOp::verify() { // C1
  return verifyConv(*this, getType(), getWeights().getType(),
                    getDy().getType());
}

LogicalResult ConvDwOp::verify() { // C1
  return verifyConv(*this, getX().getType(), getType(), getDy().getType());
}

/// As much as the convolution: each product of it gives one to a derivative.
static Cost getGradientCost(Operation *op, RankedTensorType weights,
                            RankedTensorType dy) {
  const int64_t outChannels = std::max<int64_t>(weights.getDimSize(0), 1);
  Cost cost;
  cost.flops =
      2 * (weights.getNumElements() / outChannels) * dy.getNumElements();
  for (Type type : op->getOperandTypes())
    cost.bytes += getByteSize(type);
  cost.bytes += getByteSize(op->getResult(0).getType());
  cost.kind = CostKind::conv;
  return cost;
}

Cost ConvDxOp::getCost() {
  return getGradientCost(*this, getWeights().getType(), getDy().getType());
}

Cost ConvDwOp::getCost() {
  return getGradientCost(*this, getType(), getDy().getType());
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

LogicalResult AttentionOp::verify() {
  RankedTensorType q = getQ().getType(), k = getK().getType();
  RankedTensorType v = getV().getType(), result = getType();
  for (RankedTensorType type : {q, k, v, result})
    if (type.getRank() != 4 || type.getElementType() != q.getElementType() ||
        type.getDimSize(0) != q.getDimSize(0) ||
        type.getDimSize(1) != q.getDimSize(1)) // C1
      return emitOpError("needs tensors of rank 4 that agree in element type, "
                         "batch and heads, not ")
             << q << ", " << k << ", " << v << " and " << result;
  if (q.getDimSize(3) != k.getDimSize(3) ||
      k.getDimSize(2) != v.getDimSize(2) ||
      q.getDimSize(2) != result.getDimSize(2) ||
      v.getDimSize(3) != result.getDimSize(3)) // C2
    return emitOpError("has sizes that do not fit: ")
           << q << ", " << k << ", " << v << " and " << result;
  if (q.getDimSize(3) < 1) // C4
    return emitOpError("compares vectors without elements: ") << q;
  int64_t scores[] = {q.getDimSize(0), q.getDimSize(1), q.getDimSize(2),
                      k.getDimSize(2)};
  for (Value mask : {getMaskMul(), getMaskAdd()}) {
    if (!mask)
      continue;
    auto type = cast<RankedTensorType>(mask.getType());
    bool fits =
        type.getRank() == 4 && type.getElementType() == q.getElementType();
    for (int64_t dim = 0; fits && dim < 4; ++dim)
      fits = type.getDimSize(dim) == 1 || type.getDimSize(dim) == scores[dim];
    if (!fits) // C3
      return emitOpError("cannot repeat a mask ")
             << type << " to [" << ArrayRef<int64_t>(scores) << "]";
  }
  return success();
}

Cost AttentionOp::getCost() {
  RankedTensorType q = getQ().getType(), v = getV().getType();
  int64_t scores =
      q.getDimSize(0) * q.getDimSize(1) * q.getDimSize(2) * v.getDimSize(2);
  Cost cost;
  // Both products, and about 25 operations a score for the softmax.
  cost.flops = scores * (2 * q.getDimSize(3) + 2 * v.getDimSize(3) + 25);
  for (Type type : getOperation()->getOperandTypes())
    cost.bytes += getByteSize(type);
  cost.bytes += getByteSize(getType());
  cost.kind = CostKind::attention;
  return cost;
}

} // namespace partita::nn
