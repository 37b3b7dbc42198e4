//===- ShapeElements.cpp - Elements of ops that move them -----------------===//
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

static ArrayRef<int64_t> getShape(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

Value TransposeOp::emitElement(OpBuilder &b, ElementEmitter &emitter,
                               ArrayRef<Index> position) {
  SmallVector<Index> source(position.size());
  for (auto [to, from] : llvm::enumerate(getPermutation()))
    source[from] = position[to];
  return emitter.evaluate(b, getX(), source);
}

Value BroadcastOp::emitElement(OpBuilder &b, ElementEmitter &emitter,
                               ArrayRef<Index> position) {
  SmallVector<Index> source;
  for (auto [size, dim] : llvm::zip_equal(getShape(getX()), getDims()))
    source.push_back(size == 1 ? emitter.constant(0) : position[dim]);
  return emitter.evaluate(b, getX(), source);
}

Value SliceOp::emitElement(OpBuilder &b, ElementEmitter &emitter,
                           ArrayRef<Index> position) {
  SmallVector<Index> source;
  for (auto [index, start, stride] :
       llvm::zip_equal(position, getStarts(), getStrides()))
    source.push_back(emitter.add(b, emitter.mul(b, index, stride), start));
  return emitter.evaluate(b, getX(), source);
}

Value ReverseOp::emitElement(OpBuilder &b, ElementEmitter &emitter,
                             ArrayRef<Index> position) {
  SmallVector<Index> source(position);
  for (int64_t dim : getDims())
    source[dim] = emitter.add(b, emitter.mul(b, source[dim], -1),
                              getShape(getX())[dim] - 1);
  return emitter.evaluate(b, getX(), source);
}

Value IotaOp::emitElement(OpBuilder &b, ElementEmitter &emitter,
                          ArrayRef<Index> position) {
  Value index = emitter.toValue(b, position[getDim()]);
  Value wide = arith::IndexCastOp::create(b, getLoc(), b.getI64Type(), index);
  return scalar::cast(b, getLoc(), wide, b.getI64Type(),
                      getType().getElementType(), true);
}

/// Before the first micro-batch.
Value AccumulatorOp::emitElement(OpBuilder &b, ElementEmitter &,
                                 ArrayRef<Index>) {
  Type type = getType().getElementType();
  if (auto integer = dyn_cast<IntegerType>(type))
    type = b.getIntegerType(integer.getWidth());
  return arith::ConstantOp::create(b, getLoc(), b.getZeroAttr(type));
}

Value ReshapeOp::emitElement(OpBuilder &b, ElementEmitter &emitter,
                             ArrayRef<Index> position) {
  Location loc = getLoc();
  ArrayRef<int64_t> from = getShape(getX()), to = getShape(getResult());
  // Walk both shapes in groups of dimensions with equal products.
  SmallVector<Index> indices(from.size(), emitter.constant(0));
  if (llvm::is_contained(from, 0))
    return emitter.evaluate(b, getX(), indices);
  size_t i = 0, j = 0;
  while (i < from.size()) {
    size_t firstFrom = i, firstTo = j;
    int64_t fromSize = from[i++], toSize = 1;
    while (fromSize != toSize) {
      if (toSize < fromSize)
        toSize *= to[j++];
      else
        fromSize *= from[i++];
    }
    Index linear = emitter.constant(0);
    for (size_t k = firstTo; k < j; ++k)
      if (to[k] != 1)
        linear = emitter.add(b, emitter.mul(b, linear, to[k]), position[k]);
    size_t wide = llvm::count_if(from.slice(firstFrom, i - firstFrom),
                                 [](int64_t size) { return size != 1; });
    if (wide <= 1) {
      for (size_t k = firstFrom; k < i; ++k)
        if (from[k] != 1)
          indices[k] = linear;
      continue;
    }
    Value rest = emitter.toValue(b, linear);
    for (size_t k = i; k-- > firstFrom;) {
      if (from[k] == 1)
        continue;
      Value size = arith::ConstantIndexOp::create(b, loc, from[k]);
      indices[k] = {{}, arith::RemUIOp::create(b, loc, rest, size)};
      rest = arith::DivUIOp::create(b, loc, rest, size);
    }
  }
  return emitter.evaluate(b, getX(), indices);
}

Value PadOp::emitElement(OpBuilder &b, ElementEmitter &emitter,
                         ArrayRef<Index> position) {
  ArrayRef<int64_t> shape = getShape(getX());
  if (llvm::is_contained(shape, 0))
    return emitter.evaluate(b, getValue(), {});
  Value inside;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    int64_t low = getLow()[dim], high = getHigh()[dim];
    if (low || high)
      inside = emitter.inRange(b, inside, position[dim], low, low + shape[dim]);
  }
  auto inner = [&](OpBuilder &arm) {
    SmallVector<Index> moved;
    for (auto [index, low] : llvm::zip_equal(position, getLow()))
      moved.push_back(emitter.add(arm, index, -low));
    return emitter.evaluate(arm, getX(), moved);
  };
  if (!inside)
    return inner(b);
  Type scalar = getSignlessType(getType().getElementType());
  return emitter.guard(b, getLoc(), inside, scalar, inner, [&](OpBuilder &arm) {
    return emitter.evaluate(arm, getValue(), {});
  });
}

/// The operands from `first` on, which begin at `start` of the result.
static Value emitConcat(ConcatOp concat, OpBuilder &b, ElementEmitter &emitter,
                        ArrayRef<Index> position, unsigned first,
                        int64_t start) {
  int64_t dim = concat.getDim();
  Value operand = concat->getOperand(first);
  int64_t end = start + getShape(operand)[dim];
  auto inner = [&](OpBuilder &arm) {
    SmallVector<Index> moved(position);
    moved[dim] = emitter.add(arm, moved[dim], -start);
    return emitter.evaluate(arm, operand, moved);
  };
  if (first + 1 == concat->getNumOperands())
    return inner(b);
  if (start == end)
    return emitConcat(concat, b, emitter, position, first + 1, end);
  Value inside = emitter.inRange(b, {}, position[dim], start, end);
  Type scalar = getSignlessType(concat.getType().getElementType());
  return emitter.guard(
      b, concat.getLoc(), inside, scalar, inner, [&](OpBuilder &arm) {
        return emitConcat(concat, arm, emitter, position, first + 1, end);
      });
}

Value ConcatOp::emitElement(OpBuilder &b, ElementEmitter &emitter,
                            ArrayRef<Index> position) {
  return emitConcat(*this, b, emitter, position, 0, 0);
}

Value GatherOp::emitElement(OpBuilder &b, ElementEmitter &emitter,
                            ArrayRef<Index> position) {
  int64_t dim = getDim();
  int64_t indexRank = getShape(getIndices()).size();
  Value which = PARTITA_TRY(
      emitter.evaluate(b, getIndices(), position.slice(dim, indexRank)));
  SmallVector<Index> source(position.take_front(dim));
  source.push_back(emitter.wrapped(b, getLoc(), which, getShape(getX())[dim]));
  llvm::append_range(source, position.drop_front(dim + indexRank));
  return emitter.evaluate(b, getX(), source);
}

Value GatherElementsOp::emitElement(OpBuilder &b, ElementEmitter &emitter,
                                    ArrayRef<Index> position) {
  Value which = PARTITA_TRY(emitter.evaluate(b, getIndices(), position));
  SmallVector<Index> source(position);
  int64_t dim = getDim();
  source[dim] = emitter.wrapped(b, getLoc(), which, getShape(getX())[dim]);
  return emitter.evaluate(b, getX(), source);
}

} // namespace partita::nn
