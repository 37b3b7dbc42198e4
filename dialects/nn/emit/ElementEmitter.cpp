//===- ElementEmitter.cpp - Arithmetic on positions -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/emit/ElementEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace partita::nn {

Index ElementEmitter::constant(int64_t value) {
  return {getAffineConstantExpr(value, context), {}};
}

Index ElementEmitter::add(OpBuilder &b, Index x, int64_t addend) {
  if (addend == 0)
    return x;
  return add(b, x, constant(addend));
}

Index ElementEmitter::add(OpBuilder &b, Index x, Index y) {
  if (x.expr && y.expr)
    return {x.expr + y.expr, {}};
  Value left = toValue(b, x), right = toValue(b, y);
  return {{}, arith::AddIOp::create(b, left.getLoc(), left, right)};
}

Index ElementEmitter::mul(OpBuilder &b, Index x, int64_t factor) {
  if (factor == 1)
    return x;
  if (x.expr)
    return {x.expr * factor, {}};
  Location loc = x.value.getLoc();
  Value by = arith::ConstantIndexOp::create(b, loc, factor);
  return {{}, arith::MulIOp::create(b, loc, x.value, by)};
}

Value ElementEmitter::inRange(OpBuilder &b, Value tested, Index x, int64_t low,
                              int64_t high) {
  Value position = toValue(b, x);
  Location loc = position.getLoc();
  // low <= x < high, in one unsigned comparison.
  Value lowest = arith::ConstantIndexOp::create(b, loc, low);
  Value width = arith::ConstantIndexOp::create(b, loc, high - low);
  Value moved =
      low == 0 ? position
               : arith::SubIOp::create(b, loc, position, lowest).getResult();
  Value inside =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, moved, width);
  return tested ? arith::AndIOp::create(b, loc, tested, inside).getResult()
                : inside;
}

Index ElementEmitter::windowed(OpBuilder &b, Index out, Index inner,
                               const Window &window, Value &inside) {
  Index position =
      add(b, mul(b, out, window.stride), mul(b, inner, window.dilation));
  position = add(b, position, -window.low);
  if (window.low || window.high)
    inside = inRange(b, inside, position, 0, window.size);
  return position;
}

Index ElementEmitter::unwindowed(OpBuilder &b, Index x, Index inner,
                                 const Window &window, Value &inside) {
  Index from = add(b, add(b, x, window.low), mul(b, inner, -window.dilation));
  inside = inRange(b, inside, from, 0, (window.size - 1) * window.stride + 1);
  if (window.stride == 1)
    return from;
  Value value = toValue(b, from);
  Location loc = value.getLoc();
  Value step = arith::ConstantIndexOp::create(b, loc, window.stride),
        zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value rest = arith::RemSIOp::create(b, loc, value, step);
  Value meets =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, rest, zero);
  inside = arith::AndIOp::create(b, loc, inside, meets);
  return {{}, arith::DivSIOp::create(b, loc, value, step)};
}

Index ElementEmitter::wrapped(OpBuilder &b, Location loc, Value which,
                              int64_t count) {
  Value index = arith::IndexCastOp::create(b, loc, b.getIndexType(), which);
  Value size = arith::ConstantIndexOp::create(b, loc, count);
  Value last = arith::ConstantIndexOp::create(b, loc, count - 1);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value negative =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, index, zero);
  Value wrapped = arith::AddIOp::create(b, loc, index, size);
  index = arith::SelectOp::create(b, loc, negative, wrapped, index);
  index = arith::MaxSIOp::create(b, loc, index, zero);
  index = arith::MinSIOp::create(b, loc, index, last);
  return {{}, index};
}

} // namespace partita::nn
