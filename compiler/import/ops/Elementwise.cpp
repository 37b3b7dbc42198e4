//===- Elementwise.cpp - Arithmetic, comparisons, logic -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/NodeImport.h"
#include "compiler/import/graph/OpTable.h"

#include <limits>

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

/// Floats of eight bits are only stored.
Type getComputedType(Type element) {
  return element.getIntOrFloatBitWidth() < 16
             ? Float32Type::get(element.getContext())
             : element;
}

template <typename Op> LogicalResult importUnary(NodeImport &n) {
  return n.result(0, n.unary<Op>(n.input(0)));
}

/// The two operands in one shape. Before opset 7 broadcasting had to be asked
/// for, of the second operand to the first, at an axis.
FailureOr<std::pair<Value, Value>> getOperands(NodeImport &n) {
  Value x = n.input(0), y = n.input(1);
  if (n.opset < 7) {
    ArrayRef<int64_t> shape = n.shapeOf(x), other = n.shapeOf(y);
    if (n.intAttr("broadcast", 0) == 0) {
      if (shape != other)
        return n.error("the operands differ in shape, and the attribute "
                       "'broadcast' is not set");
      return std::pair(x, y);
    }
    int64_t rank = shape.size(), otherRank = other.size();
    int64_t axis = n.intAttr("axis", rank - otherRank);
    if (axis < 0)
      axis += rank;
    if (axis < 0 || axis > rank - otherRank)
      return n.error("axis " + Twine(axis) + " is out of range");
    y = n.broadcastDims(y, to_vector(seq<int64_t>(axis, axis + otherRank)),
                        shape);
  } else {
    Shape shape = PARTITA_TRY(n.broadcastShape({x, y}));
    x = n.broadcastTo(x, shape);
    y = n.broadcastTo(y, shape);
  }
  if (!x || !y)
    return failure();
  return std::pair(x, y);
}

template <typename Op> LogicalResult importBinary(NodeImport &n) {
  auto [x, y] = PARTITA_TRY(getOperands(n));
  return n.result(0, n.binary<Op>(x, y));
}

template <nn::ComparePredicate predicate>
LogicalResult importCompare(NodeImport &n) {
  auto [x, y] = PARTITA_TRY(getOperands(n));
  return n.result(0, n.compare(predicate, x, y));
}

/// All inputs in one shape, combined from left to right.
template <typename Op> Value combineAll(NodeImport &n) {
  Shape shape = PARTITA_TRY(n.broadcastShape(n.inputs));
  Value all = n.broadcastTo(n.input(0), shape);
  for (Value input : ArrayRef(n.inputs).drop_front())
    all = n.binary<Op>(all, n.broadcastTo(input, shape));
  return all;
}

template <typename Op> LogicalResult importVariadic(NodeImport &n) {
  return n.result(0, combineAll<Op>(n));
}

LogicalResult importMean(NodeImport &n) {
  return n.result(0, n.div(combineAll<nn::AddOp>(n), n.inputs.size()));
}

/// Python's remainder, with the sign of the divisor; with `fmod` C's, with that
/// of the dividend.
LogicalResult importMod(NodeImport &n) {
  auto [x, y] = PARTITA_TRY(getOperands(n));
  Value rem = PARTITA_TRY(n.binary<nn::RemOp>(x, y));
  if (n.intAttr("fmod", 0) != 0 || n.elementOf(x).isUnsignedInteger())
    return n.result(0, rem);
  Value zero = n.splat(0, x);
  Value notZero = n.ne(rem, zero);
  Value signsDiffer = n.binary<nn::XorOp>(n.lt(rem, zero), n.lt(y, zero));
  return n.result(0, n.select(n.binary<nn::AndOp>(notZero, signsDiffer),
                              n.add(rem, y), rem));
}

/// The result has the type of the base. An integer base with a floating-point
/// exponent is computed in f64, as NumPy does.
LogicalResult importPow(NodeImport &n) {
  auto [x, y] = PARTITA_TRY(getOperands(n));
  Type base = n.elementOf(x), exponent = n.elementOf(y);
  if (isa<IntegerType>(base) && isa<FloatType>(exponent)) {
    Type wide = n.b.getF64Type();
    Value power = n.binary<nn::PowOp>(n.cast(x, wide), n.cast(y, wide));
    return n.result(0, n.cast(power, base));
  }
  return n.result(0, n.binary<nn::PowOp>(x, n.cast(y, base)));
}

LogicalResult importWhere(NodeImport &n) {
  Shape shape = PARTITA_TRY(n.broadcastShape(n.inputs));
  return n.result(0, n.select(n.broadcastTo(n.input(0), shape),
                              n.broadcastTo(n.input(1), shape),
                              n.broadcastTo(n.input(2), shape)));
}

/// A bound of Clip: an attribute before opset 11, then an optional scalar
/// input. Without one it is the largest number of the type, which infinity
/// becomes.
Value getBound(NodeImport &n, unsigned i, StringRef name, Value x) {
  if (Value bound = n.input(i))
    return n.broadcastTo(n.reshape(bound, {}), n.shapeOf(x));
  if (n.attr(name))
    return n.splat(n.floatAttr(name, 0), x);
  if (auto type = dyn_cast<FloatType>(n.elementOf(x)))
    return n.splat(llvm::APFloat::getLargest(type.getFloatSemantics(),
                                             /*Negative=*/i == 1)
                       .convertToDouble(),
                   x);
  return {};
}

LogicalResult importClip(NodeImport &n) {
  Value x = n.input(0);
  for (unsigned i : {1u, 2u})
    if (n.input(i) && n.typeOf(n.input(i)).getNumElements() != 1)
      return n.error("the bounds must be single numbers");
  if (Value low = getBound(n, 1, "min", x))
    x = n.max(x, low);
  if (!x)
    return failure();
  if (Value high = getBound(n, 2, "max", x))
    x = n.min(x, high);
  return n.result(0, x);
}

/// Zeros come in from either side.
LogicalResult importBitShift(NodeImport &n) {
  auto [x, y] = PARTITA_TRY(getOperands(n));
  std::string direction = PARTITA_TRY(n.choice("direction", {"LEFT", "RIGHT"}));
  return n.result(0, direction == "LEFT" ? n.binary<nn::ShiftLeftOp>(x, y)
                                         : n.binary<nn::ShiftRightOp>(x, y));
}

/// NaN is the one number that differs from itself.
LogicalResult importIsNaN(NodeImport &n) {
  Value x = n.cast(n.input(0), getComputedType(n.elementOf(n.input(0))));
  return n.result(0, n.ne(x, x));
}

LogicalResult importIsInf(NodeImport &n) {
  Value x = n.cast(n.input(0), getComputedType(n.elementOf(n.input(0))));
  bool positive = n.intAttr("detect_positive", 1) != 0;
  bool negative = n.intAttr("detect_negative", 1) != 0;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (positive && negative)
    return n.result(0, n.eq(n.unary<nn::AbsOp>(x), kInfinity));
  if (!positive && !negative)
    return n.result(0, n.splat(0, n.shapeOf(x), n.b.getI1Type()));
  return n.result(0, n.eq(x, positive ? kInfinity : -kInfinity));
}

const OpRow elementwiseOps[] = {
    {"Abs", 1, 13, importUnary<nn::AbsOp>},
    {"Acos", 7, 22, importUnary<nn::AcosOp>},
    {"Acosh", 9, 22, importUnary<nn::AcoshOp>},
    {"Add", 1, 14, importBinary<nn::AddOp>},
    {"And", 1, 7, importBinary<nn::AndOp>},
    {"Asin", 7, 22, importUnary<nn::AsinOp>},
    {"Asinh", 9, 22, importUnary<nn::AsinhOp>},
    {"Atan", 7, 22, importUnary<nn::AtanOp>},
    {"Atanh", 9, 22, importUnary<nn::AtanhOp>},
    {"BitShift", 11, 28, importBitShift},
    {"BitwiseAnd", 18, 18, importBinary<nn::AndOp>},
    {"BitwiseNot", 18, 18, importUnary<nn::NotOp>},
    {"BitwiseOr", 18, 18, importBinary<nn::OrOp>},
    {"BitwiseXor", 18, 18, importBinary<nn::XorOp>},
    {"Ceil", 1, 13, importUnary<nn::CeilOp>},
    {"Clip", 1, 13, importClip},
    {"Cos", 7, 22, importUnary<nn::CosOp>},
    {"Cosh", 9, 22, importUnary<nn::CoshOp>},
    {"Div", 1, 14, importBinary<nn::DivOp>},
    {"Equal", 1, 19, importCompare<nn::ComparePredicate::eq>},
    {"Erf", 9, 13, importUnary<nn::ErfOp>},
    {"Exp", 1, 13, importUnary<nn::ExpOp>},
    {"Floor", 1, 13, importUnary<nn::FloorOp>},
    {"Greater", 1, 13, importCompare<nn::ComparePredicate::gt>},
    {"GreaterOrEqual", 12, 16, importCompare<nn::ComparePredicate::ge>},
    {"IsInf", 10, 20, importIsInf},
    {"IsNaN", 9, 20, importIsNaN},
    {"Less", 1, 13, importCompare<nn::ComparePredicate::lt>},
    {"LessOrEqual", 12, 16, importCompare<nn::ComparePredicate::le>},
    {"Log", 1, 13, importUnary<nn::LogOp>},
    {"Max", 1, 13, importVariadic<nn::MaxOp>},
    {"Mean", 1, 13, importMean},
    {"Min", 1, 13, importVariadic<nn::MinOp>},
    {"Mod", 10, 28, importMod},
    {"Mul", 1, 14, importBinary<nn::MulOp>},
    {"Neg", 1, 13, importUnary<nn::NegOp>},
    {"Not", 1, 1, importUnary<nn::NotOp>},
    {"Or", 1, 7, importBinary<nn::OrOp>},
    {"Pow", 1, 15, importPow},
    {"Reciprocal", 1, 13, importUnary<nn::ReciprocalOp>},
    {"Round", 11, 22, importUnary<nn::RoundEvenOp>},
    {"Sign", 9, 13, importUnary<nn::SignOp>},
    {"Sin", 7, 22, importUnary<nn::SinOp>},
    {"Sinh", 9, 22, importUnary<nn::SinhOp>},
    {"Sqrt", 1, 13, importUnary<nn::SqrtOp>},
    {"Sub", 1, 14, importBinary<nn::SubOp>},
    {"Sum", 1, 13, importVariadic<nn::AddOp>},
    {"Tan", 7, 22, importUnary<nn::TanOp>},
    {"Where", 9, 16, importWhere},
    {"Xor", 1, 7, importBinary<nn::XorOp>},
};

} // namespace

ArrayRef<OpRow> getElementwiseOps() { return elementwiseOps; }

} // namespace partita::import
