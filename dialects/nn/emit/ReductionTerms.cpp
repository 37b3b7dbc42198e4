//===- ReductionTerms.cpp - What reductions combine -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"
#include "dialects/nn/fold/ScalarEmit.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace partita::nn {

/// An element of `value`, as an element of type `wide`.
static Value emitWide(OpBuilder &b, ElementEmitter &emitter, Location loc,
                      Value value, ArrayRef<Index> position, Type wide) {
  Value x = emitter.evaluate(b, value, position);
  return x ? scalar::cast(b, loc, x, getElementTypeOrSelf(value), wide, true)
           : x;
}

/// What `emit` gives, or `neutral` where `inside`, which may be null, does not
/// hold.
static Value emitInside(OpBuilder &b, ElementEmitter &emitter, Location loc,
                        Value inside, TypedAttr neutral,
                        ElementEmitter::EmitFn emit) {
  if (!inside)
    return emit(b);
  return emitter.guard(b, loc, inside, neutral.getType(), emit,
                       [&](OpBuilder &arm) -> Value {
                         return arith::ConstantOp::create(arm, loc, neutral);
                       });
}

SmallVector<int64_t> ReduceOp::getReducedSizes() {
  return permuted(getX().getType().getShape(), getDims());
}

ReduceKind ReduceOp::getReduceKind() { return getKind(); }

Value ReduceOp::emitTerm(OpBuilder &b, ElementEmitter &emitter,
                         ArrayRef<Index> position, ArrayRef<Index> reduced,
                         TypedAttr, Type wide) {
  SmallVector<Index> source;
  unsigned nextKept = 0, nextReduced = 0;
  for (int64_t dim = 0; dim < getX().getType().getRank(); ++dim)
    source.push_back(llvm::is_contained(getDims(), dim) ? reduced[nextReduced++]
                                                        : position[nextKept++]);
  return emitWide(b, emitter, getLoc(), getX(), source, wide);
}

SmallVector<int64_t> DotOp::getReducedSizes() {
  return permuted(getLhs().getType().getShape(), getLhsContract());
}

ReduceKind DotOp::getReduceKind() { return ReduceKind::sum; }

Value DotOp::emitTerm(OpBuilder &b, ElementEmitter &emitter,
                      ArrayRef<Index> position, ArrayRef<Index> reduced,
                      TypedAttr, Type wide) {
  size_t nextFree = getLhsBatch().size();
  auto emitSide = [&](TypedValue<RankedTensorType> operand,
                      ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
    SmallVector<Index> source;
    for (int64_t dim = 0; dim < operand.getType().getRank(); ++dim) {
      const int64_t *inBatch = llvm::find(batch, dim);
      const int64_t *inContract = llvm::find(contract, dim);
      if (inBatch != batch.end())
        source.push_back(position[inBatch - batch.begin()]);
      else if (inContract != contract.end())
        source.push_back(reduced[inContract - contract.begin()]);
      else
        source.push_back(position[nextFree++]);
    }
    return emitWide(b, emitter, getLoc(), operand, source, wide);
  };
  Value lhs = emitSide(getLhs(), getLhsBatch(), getLhsContract());
  Value rhs = emitSide(getRhs(), getRhsBatch(), getRhsContract());
  return lhs && rhs ? scalar::mul(b, getLoc(), lhs, rhs) : Value();
}

/// Channel `inner` of the group that holds channel `outer`; a group has
/// `perGroup` of the outer ones, and `perGroupInner` of the others.
static Index getChannel(OpBuilder &b, ElementEmitter &emitter, Location loc,
                        int64_t groups, Index outer, int64_t perGroup,
                        Index inner, int64_t perGroupInner) {
  if (groups == 1)
    return inner;
  Value size = arith::ConstantIndexOp::create(b, loc, perGroup);
  Index group = {
      {}, arith::DivUIOp::create(b, loc, emitter.toValue(b, outer), size)};
  return emitter.add(b, emitter.mul(b, group, perGroupInner), inner);
}

SmallVector<int64_t> ConvOp::getReducedSizes() {
  return SmallVector<int64_t>(getWeights().getType().getShape().drop_front());
}

ReduceKind ConvOp::getReduceKind() { return ReduceKind::sum; }

Value ConvOp::emitTerm(OpBuilder &b, ElementEmitter &emitter,
                       ArrayRef<Index> position, ArrayRef<Index> reduced,
                       TypedAttr neutral, Type wide) {
  Location loc = getLoc();
  RankedTensorType weights = getWeights().getType();
  int64_t channelDim = getChannelDim(), first = getFirstSpatialDim();
  Index out = position[channelDim];
  SmallVector<Index> source(position.size(), position[0]);
  source[channelDim] = getChannel(b, emitter, loc, getGroups(), out,
                                  weights.getDimSize(0) / getGroups(),
                                  reduced[0], weights.getDimSize(1));
  Value inside;
  for (auto i : llvm::seq<size_t>(getStrides().size()))
    source[first + i] = emitter.windowed(
        b, position[first + i], reduced[i + 1],
        {getStrides()[i], getDilations()[i], getPadsLow()[i], getPadsHigh()[i],
         getX().getType().getDimSize(first + i)},
        inside);
  SmallVector<Index> filter{out};
  llvm::append_range(filter, reduced);
  return emitInside(
      b, emitter, loc, inside, neutral, [&](OpBuilder &arm) -> Value {
        Value x = emitWide(arm, emitter, loc, getX(), source, wide);
        Value w = emitWide(arm, emitter, loc, getWeights(), filter, wide);
        return x && w ? scalar::mul(arm, loc, x, w) : Value();
      });
}

SmallVector<int64_t> ConvDxOp::getReducedSizes() {
  SmallVector<int64_t> sizes(getWeights().getType().getShape());
  sizes[0] /= getGroups();
  sizes.erase(sizes.begin() + 1);
  return sizes;
}

ReduceKind ConvDxOp::getReduceKind() { return ReduceKind::sum; }

/// The pixel of dy whose window has this pixel at this tap, if there is one.
Value ConvDxOp::emitTerm(OpBuilder &b, ElementEmitter &emitter,
                         ArrayRef<Index> position, ArrayRef<Index> reduced,
                         TypedAttr neutral, Type wide) {
  Location loc = getLoc();
  RankedTensorType weights = getWeights().getType();
  const int64_t channelDim = getChannelDim(), first = getFirstSpatialDim(),
                perGroup = weights.getDimSize(1);
  Index in = position[channelDim];
  Index out = getChannel(b, emitter, loc, getGroups(), in, perGroup, reduced[0],
                         weights.getDimSize(0) / getGroups());
  SmallVector<Index> source(position.size(), position[0]), filter = {out, in};
  if (getGroups() > 1)
    filter[1] = {{},
                 arith::RemUIOp::create(
                     b, loc, emitter.toValue(b, in),
                     arith::ConstantIndexOp::create(b, loc, perGroup))};
  source[channelDim] = out;
  Value inside;
  for (auto i : llvm::seq<size_t>(getStrides().size())) {
    const int64_t stride = getStrides()[i],
                  size = getDy().getType().getDimSize(first + i);
    Index from =
        emitter.add(b, emitter.add(b, position[first + i], getPadsLow()[i]),
                    emitter.mul(b, reduced[i + 1], -getDilations()[i]));
    inside = emitter.inRange(b, inside, from, 0, (size - 1) * stride + 1);
    if (stride > 1) {
      Value value = emitter.toValue(b, from),
            step = arith::ConstantIndexOp::create(b, loc, stride),
            zero = arith::ConstantIndexOp::create(b, loc, 0);
      Value rest = arith::RemSIOp::create(b, loc, value, step);
      Value meets =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, rest, zero);
      inside = arith::AndIOp::create(b, loc, inside, meets);
      from = {{}, arith::DivSIOp::create(b, loc, value, step)};
    }
    source[first + i] = from;
    filter.push_back(reduced[i + 1]);
  }
  return emitInside(
      b, emitter, loc, inside, neutral, [&](OpBuilder &arm) -> Value {
        Value dy = emitWide(arm, emitter, loc, getDy(), source, wide);
        Value w = emitWide(arm, emitter, loc, getWeights(), filter, wide);
        return dy && w ? scalar::mul(arm, loc, dy, w) : Value();
      });
}

SmallVector<int64_t> ConvDwOp::getReducedSizes() {
  RankedTensorType dy = getDy().getType();
  SmallVector<int64_t> sizes = {dy.getDimSize(0)};
  llvm::append_range(
      sizes, dy.getShape().slice(getFirstSpatialDim(), getStrides().size()));
  return sizes;
}

ReduceKind ConvDwOp::getReduceKind() { return ReduceKind::sum; }

Value ConvDwOp::emitTerm(OpBuilder &b, ElementEmitter &emitter,
                         ArrayRef<Index> position, ArrayRef<Index> reduced,
                         TypedAttr neutral, Type wide) {
  Location loc = getLoc();
  const int64_t channelDim = getChannelDim(), first = getFirstSpatialDim();
  SmallVector<Index> source(position.size(), reduced[0]),
      other(position.size(), reduced[0]);
  source[channelDim] = getChannel(b, emitter, loc, getGroups(), position[0],
                                  getType().getDimSize(0) / getGroups(),
                                  position[1], getType().getDimSize(1));
  other[channelDim] = position[0];
  Value inside;
  for (auto i : llvm::seq<size_t>(getStrides().size())) {
    other[first + i] = reduced[i + 1];
    source[first + i] = emitter.windowed(
        b, reduced[i + 1], position[i + 2],
        {getStrides()[i], getDilations()[i], getPadsLow()[i], getPadsHigh()[i],
         getX().getType().getDimSize(first + i)},
        inside);
  }
  return emitInside(
      b, emitter, loc, inside, neutral, [&](OpBuilder &arm) -> Value {
        Value x = emitWide(arm, emitter, loc, getX(), source, wide);
        Value dy = emitWide(arm, emitter, loc, getDy(), other, wide);
        return x && dy ? scalar::mul(arm, loc, x, dy) : Value();
      });
}

/// The dimensions along which a window holds more than one element of `x`, or
/// of its border.
static SmallVector<int64_t> getWindowedDims(WindowReduceOp op) {
  SmallVector<int64_t> dims;
  for (auto [dim, size] : llvm::enumerate(op.getWindow()))
    if (size != 1 || op.getPadsLow()[dim] || op.getPadsHigh()[dim])
      dims.push_back(dim);
  return dims;
}

SmallVector<int64_t> WindowReduceOp::getReducedSizes() {
  return permuted(getWindow(), getWindowedDims(*this));
}

ReduceKind WindowReduceOp::getReduceKind() { return getKind(); }

Value WindowReduceOp::emitTerm(OpBuilder &b, ElementEmitter &emitter,
                               ArrayRef<Index> position,
                               ArrayRef<Index> reduced, TypedAttr neutral,
                               Type wide) {
  SmallVector<Index> source;
  for (auto [index, stride] : llvm::zip_equal(position, getStrides()))
    source.push_back(emitter.mul(b, index, stride));
  Value inside;
  for (auto [i, dim] : llvm::enumerate(getWindowedDims(*this)))
    source[dim] = emitter.windowed(b, position[dim], reduced[i],
                                   {getStrides()[dim], getDilations()[dim],
                                    getPadsLow()[dim], getPadsHigh()[dim],
                                    getX().getType().getDimSize(dim)},
                                   inside);
  return emitInside(b, emitter, getLoc(), inside, neutral, [&](OpBuilder &arm) {
    return emitWide(arm, emitter, getLoc(), getX(), source, wide);
  });
}

} // namespace partita::nn
