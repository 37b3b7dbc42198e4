//===- PointwiseFold.cpp - Folding of pointwise ops -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"
#include "dialects/nn/fold/ConstantElements.h"

using namespace mlir;

namespace partita::nn {

/// Whether all elements of a constant are `value`.
static bool isSplatOf(Attribute attr, double value) {
  auto dense = dyn_cast_or_null<DenseElementsAttr>(attr);
  if (!dense || !dense.isSplat())
    return false;
  Attribute element = dense.getSplatValue<Attribute>();
  if (auto number = dyn_cast<FloatAttr>(element))
    return number.getValueAsDouble() == value;
  const APInt &bits = cast<IntegerAttr>(element).getValue();
  return bits == APInt(bits.getBitWidth(), static_cast<uint64_t>(value),
                       /*isSigned=*/false, /*implicitTrunc=*/true);
}

/// An operand that the op leaves as it is.
static Value foldIdentity(Operation *op, ArrayRef<Attribute> operands) {
  if (isa<AddOp, SubOp>(op) && isSplatOf(operands[1], 0))
    return op->getOperand(0);
  if (isa<MulOp, DivOp, PowOp>(op) && isSplatOf(operands[1], 1))
    return op->getOperand(0);
  if (isa<MaxOp, MinOp, AndOp, OrOp>(op) &&
      op->getOperand(0) == op->getOperand(1))
    return op->getOperand(0);
  if (isa<NegOp, NotOp>(op))
    if (Operation *inner = op->getOperand(0).getDefiningOp();
        inner && inner->getName() == op->getName())
      return inner->getOperand(0);
  if (isa<ReluOp, AbsOp, CeilOp, FloorOp, RoundEvenOp, SignOp>(op))
    if (Operation *inner = op->getOperand(0).getDefiningOp();
        inner && inner->getName() == op->getName())
      return op->getOperand(0);
  if (isa<CastOp>(op) &&
      op->getOperand(0).getType() == op->getResult(0).getType())
    return op->getOperand(0);
  if (isa<SelectOp>(op)) {
    if (op->getOperand(1) == op->getOperand(2))
      return op->getOperand(1);
    auto predicate = dyn_cast_or_null<DenseElementsAttr>(operands[0]);
    if (predicate && predicate.isSplat())
      return op->getOperand(predicate.getSplatValue<bool>() ? 1 : 2);
  }
  return nullptr;
}

/// The result on constants, element by element.
static DenseElementsAttr evaluate(Operation *op, ArrayRef<Attribute> operands) {
  auto pointwise = cast<PointwiseOpInterface>(op);
  auto resultType = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<DenseElementsAttr> dense;
  bool allSplat = true;
  for (Attribute operand : operands) {
    dense.push_back(dyn_cast_or_null<DenseElementsAttr>(operand));
    if (!dense.back())
      return nullptr;
    allSplat &= dense.back().isSplat();
  }
  if (!allSplat && !isFoldable(resultType))
    return nullptr;

  SmallVector<Type> elementTypes =
      llvm::map_to_vector(op->getOperandTypes(),
                          [](Type type) { return getElementTypeOrSelf(type); });
  ScalarFunction function(op->getLoc(), elementTypes,
                          [&](OpBuilder &b, Location loc, ValueRange x) {
                            return pointwise.emitScalar(b, loc, x);
                          });
  SmallVector<SmallVector<Attribute>> elements;
  for (DenseElementsAttr attr : dense)
    elements.push_back(
        allSplat ? SmallVector<Attribute>{attr.getSplatValue<Attribute>()}
                 : llvm::to_vector(attr.getValues<Attribute>()));
  SmallVector<Attribute> results;
  int64_t count = allSplat ? 1 : resultType.getNumElements();
  for (int64_t i = 0; i < count; ++i) {
    SmallVector<Attribute> scalars = llvm::map_to_vector(
        elements, [&](const auto &of) { return toScalar(of[i]); });
    Attribute value = function.evaluate(scalars);
    if (!value)
      return nullptr;
    results.push_back(fromScalar(value, resultType.getElementType()));
  }
  return DenseElementsAttr::get(resultType, results);
}

OpFoldResult foldPointwise(Operation *op, ArrayRef<Attribute> operands) {
  if (Value same = foldIdentity(op, operands))
    return same;
  if (op->getNumOperands() == 0 ||
      llvm::any_of(operands, [](Attribute a) { return !a; }))
    return nullptr;
  return evaluate(op, operands);
}

} // namespace partita::nn
