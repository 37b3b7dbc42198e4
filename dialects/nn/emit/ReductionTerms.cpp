//===- ReductionTerms.cpp - What reductions combine -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"
#include "dialects/nn/fold/ScalarEmit.h"
#include "dialects/support/Try.h"

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
    source[first + i] = emitter.unwindowed(
        b, position[first + i], reduced[i + 1],
        {getStrides()[i], getDilations()[i], getPadsLow()[i], getPadsHigh()[i],
         getDy().getType().getDimSize(first + i)},
        inside);
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

/// The dimensions along which a window holds more than one element, or an
/// element of the border.
template <typename WindowOp>
static SmallVector<int64_t> getWindowedDims(WindowOp op) {
  SmallVector<int64_t> dims;
  for (auto [dim, size] : llvm::enumerate(op.getWindow()))
    if (size != 1 || op.getPadsLow()[dim] || op.getPadsHigh()[dim])
      dims.push_back(dim);
  return dims;
}

/// Where the element of x lies that a window at `position` has at `reduced`.
/// `inside` becomes whether it does not lie in the border, or stays null.
template <typename WindowOp>
static SmallVector<Index> getWindowed(OpBuilder &b, ElementEmitter &emitter,
                                      WindowOp op, ArrayRef<Index> position,
                                      ArrayRef<Index> reduced, Value &inside) {
  SmallVector<Index> source;
  for (auto [index, stride] : llvm::zip_equal(position, op.getStrides()))
    source.push_back(emitter.mul(b, index, stride));
  for (auto [i, dim] : llvm::enumerate(getWindowedDims(op)))
    source[dim] = emitter.windowed(
        b, position[dim], reduced[i],
        {op.getStrides()[dim], op.getDilations()[dim], op.getPadsLow()[dim],
         op.getPadsHigh()[dim], op.getX().getType().getDimSize(dim)},
        inside);
  return source;
}

/// The number, within its window, of the element at `reduced`, as i32.
template <typename WindowOp>
static Value getNumber(OpBuilder &b, ElementEmitter &emitter, WindowOp op,
                       ArrayRef<Index> reduced) {
  Index number = emitter.constant(0);
  for (auto [i, dim] : llvm::enumerate(getWindowedDims(op)))
    number =
        emitter.add(b, emitter.mul(b, number, op.getWindow()[dim]), reduced[i]);
  return arith::IndexCastOp::create(b, op.getLoc(), b.getI32Type(),
                                    emitter.toValue(b, number));
}

SmallVector<int64_t> WindowReduceOp::getReducedSizes() {
  return permuted(getWindow(), getWindowedDims(*this));
}

Value WindowReduceOp::emitTerm(OpBuilder &b, ElementEmitter &emitter,
                               ArrayRef<Index> position,
                               ArrayRef<Index> reduced, TypedAttr neutral,
                               Type wide) {
  Value inside;
  SmallVector<Index> source =
      getWindowed(b, emitter, *this, position, reduced, inside);
  return emitInside(b, emitter, getLoc(), inside, neutral, [&](OpBuilder &arm) {
    return emitWide(arm, emitter, getLoc(), getX(), source, wide);
  });
}

SmallVector<int64_t> WindowArgMaxOp::getReducedSizes() {
  return permuted(getWindow(), getWindowedDims(*this));
}

ReduceKind WindowArgMaxOp::getReduceKind() { return ReduceKind::min; }

/// The number of the element, if it is a largest one.
Value WindowArgMaxOp::emitTerm(OpBuilder &b, ElementEmitter &emitter,
                               ArrayRef<Index> position,
                               ArrayRef<Index> reduced, TypedAttr neutral,
                               Type) {
  Location loc = getLoc();
  Type element = getX().getType().getElementType();
  Value inside, largest = emitter.evaluate(b, getMax(), position);
  SmallVector<Index> source =
      getWindowed(b, emitter, *this, position, reduced, inside);
  if (!largest)
    return {};
  return emitInside(
      b, emitter, loc, inside, neutral, [&](OpBuilder &arm) -> Value {
        Value x = PARTITA_TRY(emitter.evaluate(arm, getX(), source));
        Value isLargest = scalar::compare(arm, loc, ComparePredicate::ge, x,
                                          largest, element);
        if (isa<FloatType>(element)) {
          Value isNaN =
              scalar::compare(arm, loc, ComparePredicate::ne, x, x, element);
          isLargest = arith::OrIOp::create(arm, loc, isLargest, isNaN);
        }
        return arith::SelectOp::create(
            arm, loc, isLargest, getNumber(arm, emitter, *this, reduced),
            arith::ConstantOp::create(arm, loc, neutral));
      });
}

SmallVector<int64_t> WindowSpreadOp::getReducedSizes() {
  return permuted(getWindow(), getWindowedDims(*this));
}

/// The element of dy whose window has this one at this place, if it names it.
Value WindowSpreadOp::emitTerm(OpBuilder &b, ElementEmitter &emitter,
                               ArrayRef<Index> position,
                               ArrayRef<Index> reduced, TypedAttr neutral,
                               Type wide) {
  Location loc = getLoc();
  SmallVector<Index> source(position);
  SmallVector<int64_t> windowed = getWindowedDims(*this);
  Value inside;
  for (int64_t dim = 0; dim < getType().getRank(); ++dim) {
    const int64_t *found = llvm::find(windowed, dim);
    if (found == windowed.end() && getStrides()[dim] == 1)
      continue;
    Index inner = found == windowed.end() ? emitter.constant(0)
                                          : reduced[found - windowed.begin()];
    source[dim] = emitter.unwindowed(b, position[dim], inner,
                                     {getStrides()[dim], getDilations()[dim],
                                      getPadsLow()[dim], getPadsHigh()[dim],
                                      getDy().getType().getDimSize(dim)},
                                     inside);
  }
  return emitInside(
      b, emitter, loc, inside, neutral, [&](OpBuilder &arm) -> Value {
        Value dy = emitWide(arm, emitter, loc, getDy(), source, wide);
        Value chosen = emitter.evaluate(arm, getChosen(), source);
        if (!dy || !chosen)
          return {};
        Value isThis =
            arith::CmpIOp::create(arm, loc, arith::CmpIPredicate::eq, chosen,
                                  getNumber(arm, emitter, *this, reduced));
        return arith::SelectOp::create(
            arm, loc, isThis, dy, arith::ConstantOp::create(arm, loc, neutral));
      });
}

} // namespace partita::nn
