//===- NNContraction.cpp - Dot, convolution, attention --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"
#include "dialects/nn/grad/Term.h"

#include "mlir/IR/Matchers.h"

#include <numeric>

using namespace mlir;
using partita::nn::grad::Shape;
using partita::nn::grad::Term;

namespace partita::nn {

//===----------------------------------------------------------------------===//
// Dot
//===----------------------------------------------------------------------===//

SmallVector<int64_t> getFreeDims(int64_t rank, ArrayRef<int64_t> batch,
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
  return makeCost(*this, 2 * depth * getType().getNumElements(), CostKind::dot);
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

LogicalResult ConvDxOp::verify() { // C1
  return verifyConv(*this, getType(), getWeights().getType(),
                    getDy().getType());
}

LogicalResult ConvDwOp::verify() { // C1
  return verifyConv(*this, getX().getType(), getType(), getDy().getType());
}

/// Each product of a convolution gives one to a derivative, too.
static Cost convCost(Operation *op, RankedTensorType weights,
                     RankedTensorType y) {
  const int64_t outChannels = std::max<int64_t>(weights.getDimSize(0), 1);
  return makeCost(
      op, 2 * (weights.getNumElements() / outChannels) * y.getNumElements(),
      CostKind::conv);
}

Cost ConvOp::getCost() {
  return convCost(*this, getWeights().getType(), getType());
}

Cost ConvDxOp::getCost() {
  return convCost(*this, getWeights().getType(), getDy().getType());
}

Cost ConvDwOp::getCost() {
  return convCost(*this, getType(), getDy().getType());
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
  // Both products, and about 25 operations a score for the softmax.
  return makeCost(*this,
                  scores * (2 * q.getDimSize(3) + 2 * v.getDimSize(3) + 25),
                  CostKind::attention);
}

//===----------------------------------------------------------------------===//
// Product with packed weights
//===----------------------------------------------------------------------===//

/// Whether there is an index for each row of x, and something to choose from.
static bool isIndexOfRows(Value experts, RankedTensorType x,
                          RankedTensorType weights) {
  return getTensorType(experts).getShape() == x.getShape().drop_back() &&
         weights.getDimSize(0) >= 1;
}

/// Bytes of the weights that a product reads: of at most one expert for each
/// row.
static int64_t countExpertBytes(RankedTensorType type, Value experts) {
  const int64_t all = type.getDimSize(0),
                chosen = std::min(getTensorType(experts).getNumElements(), all);
  return getByteSize(type) / all * chosen;
}

/// C1 and C2 of both products of experts: y[.., N] = x[.., K] . weights[E, N,
/// K]^T.
static LogicalResult verifyExperts(Operation *op, Value of, Value by,
                                   Value matrices, Value experts) {
  RankedTensorType x = getTensorType(of), y = getTensorType(by),
                   weights = getTensorType(matrices);
  if (x.getElementType() != weights.getElementType() ||
      x.getElementType() != y.getElementType())
    return op->emitOpError("needs one type of floats, not ")
           << x << ", " << weights << " and " << y;
  if (x.getRank() < 1 || weights.getRank() != 3)
    return op->emitOpError("needs weights of rank 3, and a last dimension of "
                           "x; not ")
           << weights << " and " << x;
  SmallVector<int64_t> shape(x.getShape());
  shape.back() = weights.getDimSize(1);
  if (x.getShape().back() < 1 || x.getShape().back() != weights.getDimSize(2) ||
      y.getShape() != ArrayRef(shape) || !isIndexOfRows(experts, x, weights))
    return op->emitOpError("has sizes that do not fit: ")
           << x << ", " << weights << ", " << experts.getType() << " and " << y;
  return success();
}

LogicalResult ExpertDotOp::verify() {
  return verifyExperts(*this, getX(), getResult(), getWeights(), getExperts());
}
LogicalResult ExpertOuterOp::verify() {
  return verifyExperts(*this, getX(), getDy(), getResult(), getExperts());
}

/// Of either product, one of whose values are matrices for all experts.
static Cost getExpertCost(Operation *op, Value x, Value y, int64_t bytes) {
  Cost cost;
  cost.flops = 2 * getTensorType(x).getShape().back() *
               getTensorType(y).getNumElements();
  cost.bytes = getByteSize(x.getType()) + getByteSize(y.getType()) +
               getByteSize(op->getOperand(2).getType()) + bytes;
  cost.kind = CostKind::dot;
  return cost;
}

Cost ExpertDotOp::getCost() {
  return getExpertCost(*this, getX(), getResult(),
                       countExpertBytes(getWeights().getType(), getExperts()));
}
Cost ExpertOuterOp::getCost() {
  return getExpertCost(*this, getX(), getDy(), getByteSize(getType()));
}

LogicalResult PackedDotOp::verify() {
  const int64_t bits = getBits();
  RankedTensorType x = getX().getType(), weights = getWeights().getType(),
                   scales = getScales().getType(), result = getType();
  if (bits != 2 && bits != 4 && bits != 8) // C1
    return emitOpError("has weights of ") << bits << " bits, not of 2, 4 or 8";
  const int64_t rank = getExperts() ? 4 : 3;
  if (x.getRank() < 1 || weights.getRank() != rank)
    return emitOpError("needs weights of rank ")
           << rank << ", and a last dimension of x; not " << weights << " and "
           << x;
  const int64_t blocks = weights.getDimSize(rank - 2),
                bytes = weights.getDimSize(rank - 1);
  if (!llvm::isPowerOf2_64(bytes) || bytes < 2 * bits) // C1
    return emitOpError("has blocks of ") << bytes << " bytes";
  const int64_t depth = x.getShape().back();
  SmallVector<int64_t> shape(x.getShape());
  shape.back() = weights.getDimSize(rank - 3);
  if (depth < 1 || blocks != llvm::divideCeilSigned(depth, getBlockSize()) ||
      scales.getShape() != weights.getShape().drop_back() ||
      result.getShape() != ArrayRef(shape) ||
      (getExperts() && !isIndexOfRows(getExperts(), x, weights))) // C3
    return emitOpError("has sizes that do not fit: ")
           << x << ", " << weights << ", " << scales << " and " << result;
  if (getZeros() && getZeros().getType() != scales) // C2, C3
    return emitOpError("has zeros of another type than scales: ")
           << getZeros().getType() << " and " << scales;
  if (scales.getElementType() != x.getElementType() ||
      result.getElementType() != x.getElementType()) // C2
    return emitOpError("needs one type of floats, not ")
           << x << ", " << scales << " and " << result;
  return success();
}

Cost PackedDotOp::getCost() {
  RankedTensorType x = getX().getType();
  Cost cost;
  auto bytesOf = [&](Value value) {
    const bool isWeight =
        value == getWeights() || value == getScales() || value == getZeros();
    return getExperts() && isWeight
               ? countExpertBytes(getTensorType(value), getExperts())
               : getByteSize(value.getType());
  };
  // Besides the product, about 4 operations unpack a weight.
  const int64_t unpacked = bytesOf(getWeights()) * 8 / getBits();
  cost.flops =
      2 * x.getShape().back() * getType().getNumElements() + 4 * unpacked;
  for (Value operand : getOperation()->getOperands())
    cost.bytes += bytesOf(operand);
  cost.bytes += getByteSize(getType());
  cost.kind = CostKind::dot;
  return cost;
}

Value unpack(OpBuilder &builder, Location loc, Value bytes, int64_t bits) {
  if (bits == 8)
    return bytes;
  ImplicitLocOpBuilder b(loc, builder);
  const Term packed(b, bytes);
  RankedTensorType type = packed.type();
  const Term mask = packed.splat((1 << bits) - 1);
  Shape one(type.getShape());
  one.push_back(1);
  SmallVector<Value> parts;
  for (int64_t low = 0; low < 8; low += bits) {
    const Term by = packed.splat(static_cast<double>(low));
    Term shifted = packed.make<ShiftRightOp>(type, packed.get(), by.get());
    Term number = packed.make<AndOp>(type, shifted.get(), mask.get());
    parts.push_back(number.reshape(one));
  }
  Shape all(type.getShape());
  all.push_back(8 / bits);
  Term numbers = packed.make<ConcatOp>(type.clone(all), parts, type.getRank());
  all.pop_back();
  all.back() *= 8 / bits;
  return numbers.reshape(all);
}

void expand(PackedDotOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  const Term scales(b, op.getScales());
  Term numbers(b, unpack(b, op.getLoc(), op.getWeights(), op.getBits()));
  numbers = numbers.cast(scales.element());
  const Shape blocks(numbers.shape());
  const Shape outer = llvm::to_vector(llvm::seq<int64_t>(numbers.rank() - 1));
  auto spread = [&](Term ofBlocks) {
    return ofBlocks.broadcast(outer, blocks);
  };
  Term zeros =
      op.getZeros()
          ? spread(Term(b, op.getZeros()))
          : numbers.splat(static_cast<double>(1 << (op.getBits() - 1)));
  const Term centered = numbers - zeros;
  Shape rows = blocks;
  rows.pop_back();
  rows.back() *= blocks.back();
  Term weights = (centered * spread(scales)).reshape(rows);
  rows.back() = op.getX().getType().getShape().back();
  weights = weights.slice(Shape(rows.size(), 0), rows);
  const Shape last = {op.getX().getType().getRank() - 1}, second = {1};
  Term result =
      op.getExperts()
          ? weights.make<ExpertDotOp>(op.getType(), op.getX(), weights.get(),
                                      op.getExperts())
          : weights.make<DotOp>(op.getType(), op.getX(), weights.get(), Shape(),
                                Shape(), last, second);
  op.replaceAllUsesWith(result.get());
  op.erase();
}

/// The number that all elements are equal to, if they are a constant.
static std::optional<int64_t> getInteger(Value value) {
  APInt number;
  if (!matchPattern(value, m_ConstantInt(&number)))
    return std::nullopt;
  return number.getSExtValue();
}

/// Whether indices are known to be from 0 to count - 1: columns that nn.top_k
/// has chosen, or min(max(.., 0), count - 1).
static bool chooseBelow(Value indices, int64_t count) {
  while (auto reshape = indices.getDefiningOp<ReshapeOp>())
    indices = reshape.getX();
  if (auto top = indices.getDefiningOp<TopKOp>())
    return top.getX().getType().getDimSize(1) <= count;
  auto least = indices.getDefiningOp<MinOp>();
  auto most = least ? least.getLhs().getDefiningOp<MaxOp>() : MaxOp();
  const int64_t high = least ? getInteger(least.getRhs()).value_or(-1) : -1;
  return most && high >= 0 && high < count &&
         getInteger(most.getRhs()).value_or(-1) >= 0;
}

void expand(ExpertDotOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  const Term experts(b, op.getExperts());
  const int64_t rank = op.getX().getType().getRank();
  const Shape rows = llvm::to_vector(llvm::seq<int64_t>(rank - 1)),
              inX = {rank - 1}, inWeights = {rank};
  Shape gathered(experts.shape());
  llvm::append_range(gathered,
                     op.getWeights().getType().getShape().drop_front());
  Term weights =
      experts.make<GatherOp>(op.getWeights().getType().clone(gathered),
                             op.getWeights(), experts.get(), 0);
  Term product = weights.make<DotOp>(op.getType(), op.getX(), weights.get(),
                                     rows, rows, inX, inWeights);
  const int64_t count = op.getWeights().getType().getDimSize(0);
  if (!chooseBelow(op.getExperts(), count)) {
    const Term isHere = experts >= 0.0 && experts < static_cast<double>(count);
    product = select(isHere.broadcast(rows, product.shape()), product, 0.0);
  }
  op.replaceAllUsesWith(product.get());
  op.erase();
}

void expand(ExpertOuterOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  const Term experts(b, op.getExperts()), dy(b, op.getDy());
  const int64_t rank = experts.rank();
  Shape rows = llvm::to_vector(llvm::seq<int64_t>(rank)), all(experts.shape());
  all.push_back(op.getType().getDimSize(0));
  // dy in the place of its expert, and 0 in those of the others.
  const Term chosen = experts.broadcast(rows, all);
  const Term places =
      chosen.make<IotaOp>(chosen.type(), static_cast<int64_t>(rank));
  Term isPlace = compare(ComparePredicate::eq, chosen, places);
  Shape outer = rows, place = rows;
  outer.push_back(rank + 1);
  place.push_back(rank);
  all.push_back(dy.shape().back());
  const Term wide = dy.broadcast(outer, all);
  const Term spread = select(isPlace.broadcast(place, all), wide, 0.0);
  Term result = spread.make<DotOp>(op.getType(), spread.get(), op.getX(),
                                   Shape(), Shape(), rows, rows);
  op.replaceAllUsesWith(result.get());
  op.erase();
}

} // namespace partita::nn
