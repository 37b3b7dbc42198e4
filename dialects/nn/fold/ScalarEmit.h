//===- ScalarEmit.h - Functions of one element ------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions of pointwise ops on one element, with `arith` and `math` ops on
// signless scalars of `getSignlessType`. `type` is always the element type of
// the nn tensor, which has a signedness. Nothing here traps: an integer divided
// by zero gives zero, and the lowest integer divided by -1 wraps.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_FOLD_SCALAREMIT_H
#define PARTITA_DIALECTS_NN_FOLD_SCALAREMIT_H

#include "mlir/IR/Builders.h"

namespace partita::nn {
enum class ComparePredicate : uint32_t;
enum class ReduceKind : uint32_t;
} // namespace partita::nn

namespace partita::nn::scalar {

using mlir::Location;
using mlir::OpBuilder;
using mlir::Type;
using mlir::Value;

/// Whether `type` has no sign; booleans have none.
bool isUnsigned(Type type);

/// A constant of the signless type of `type`; `value` is rounded to it.
Value constant(OpBuilder &b, Location loc, Type type, double value);

Value abs(OpBuilder &b, Location loc, Value x, Type type);
Value neg(OpBuilder &b, Location loc, Value x);
Value relu(OpBuilder &b, Location loc, Value x, Type type);
Value sign(OpBuilder &b, Location loc, Value x, Type type);
Value bitNot(OpBuilder &b, Location loc, Value x);
Value logistic(OpBuilder &b, Location loc, Value x);
Value reciprocal(OpBuilder &b, Location loc, Value x);
Value rsqrt(OpBuilder &b, Location loc, Value x);

Value add(OpBuilder &b, Location loc, Value x, Value y);
Value sub(OpBuilder &b, Location loc, Value x, Value y);
Value mul(OpBuilder &b, Location loc, Value x, Value y);
Value div(OpBuilder &b, Location loc, Value x, Value y, Type type);
Value rem(OpBuilder &b, Location loc, Value x, Value y, Type type);
/// For integers, powers wrap; a negative exponent gives the quotient of 1 and
/// the power, rounded toward zero.
Value pow(OpBuilder &b, Location loc, Value x, Value y, Type type);
Value max(OpBuilder &b, Location loc, Value x, Value y, Type type);
Value min(OpBuilder &b, Location loc, Value x, Value y, Type type);
/// What a reduction of this kind makes of two terms.
Value combine(OpBuilder &b, Location loc, ReduceKind kind, Value x, Value y,
              Type type);
/// The shifts fill with zeros. A shift by the width or more gives 0.
Value shiftLeft(OpBuilder &b, Location loc, Value x, Value y);
Value shiftRight(OpBuilder &b, Location loc, Value x, Value y);
/// The bits of x as an element of type `to`.
Value bitcast(OpBuilder &b, Location loc, Value x, Type to);
Value compare(OpBuilder &b, Location loc, ComparePredicate predicate, Value x,
              Value y, Type type);

/// Converts between any two element types of the dialect; see `nn.cast`.
Value cast(OpBuilder &b, Location loc, Value x, Type from, Type to,
           bool saturate);

} // namespace partita::nn::scalar

#endif // PARTITA_DIALECTS_NN_FOLD_SCALAREMIT_H
