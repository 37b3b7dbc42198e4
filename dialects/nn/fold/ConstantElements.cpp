//===- ConstantElements.cpp - Elements of constants, one by one -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/fold/ConstantElements.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/nn/fold/EmptyTensors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace partita::nn {

Attribute toScalar(Attribute element) {
  Type type = cast<TypedAttr>(element).getType();
  Type signless = getSignlessType(type);
  if (type == signless)
    return element;
  unsigned width = signless.getIntOrFloatBitWidth();
  if (auto value = dyn_cast<FloatAttr>(element))
    return IntegerAttr::get(signless,
                            value.getValue().bitcastToAPInt().zext(width));
  const APInt &value = cast<IntegerAttr>(element).getValue();
  return IntegerAttr::get(signless, type.isUnsignedInteger()
                                        ? value.zextOrTrunc(width)
                                        : value.sextOrTrunc(width));
}

Attribute fromScalar(Attribute scalar, Type elementType) {
  if (cast<TypedAttr>(scalar).getType() == elementType)
    return scalar;
  APInt bits = cast<IntegerAttr>(scalar).getValue().trunc(
      elementType.getIntOrFloatBitWidth());
  if (auto floatType = dyn_cast<FloatType>(elementType))
    return FloatAttr::get(floatType,
                          APFloat(floatType.getFloatSemantics(), bits));
  return IntegerAttr::get(elementType, bits);
}

Attribute makeNumber(Type element, double value) {
  if (isa<FloatType>(element))
    return FloatAttr::get(element, value);
  return IntegerAttr::get(element, APInt(element.getIntOrFloatBitWidth(),
                                         static_cast<int64_t>(value),
                                         /*isSigned=*/true,
                                         /*implicitTrunc=*/true));
}

DenseElementsAttr makeSplat(RankedTensorType type, double value) {
  if (type.getNumElements() == 0)
    return DenseElementsAttr::get(type, ArrayRef<Attribute>());
  return DenseElementsAttr::get(type, makeNumber(type.getElementType(), value));
}

DenseElementsAttr getSplat(Value value) {
  SplatElementsAttr splat;
  matchPattern(value, m_Constant(&splat));
  return splat;
}

std::optional<double> getFloatSplat(Value value) {
  DenseElementsAttr splat = getSplat(value);
  if (!splat || !isa<FloatType>(splat.getElementType()))
    return std::nullopt;
  return splat.getSplatValue<FloatAttr>().getValueAsDouble();
}

bool isFoldable(ShapedType type) {
  return type.getNumElements() <= kMaxFoldedElements;
}

void forEachIndex(ArrayRef<int64_t> shape,
                  llvm::function_ref<void(ArrayRef<int64_t>)> visit) {
  const SmallVector<int64_t> strides = computeStrides(shape);
  for (int64_t i = 0; i < ShapedType::getNumElements(shape); ++i)
    visit(delinearize(i, strides));
}

DenseElementsAttr
mapElements(Attribute x, RankedTensorType resultType,
            llvm::function_ref<int64_t(ArrayRef<int64_t>)> source) {
  auto dense = dyn_cast_or_null<DenseElementsAttr>(x);
  if (!dense)
    return nullptr;
  if (dense.isSplat() && !hasNoElements(resultType))
    return DenseElementsAttr::get(resultType, dense.getSplatValue<Attribute>());
  if (!isFoldable(resultType) || !isFoldable(dense.getType()))
    return nullptr;
  SmallVector<Attribute> from = llvm::to_vector(dense.getValues<Attribute>());
  SmallVector<Attribute> to;
  forEachIndex(resultType.getShape(), [&](ArrayRef<int64_t> index) {
    to.push_back(from[source(index)]);
  });
  return DenseElementsAttr::get(resultType, to);
}

ScalarFunction::ScalarFunction(Location loc, ArrayRef<Type> elementTypes,
                               Emit emit) {
  for (Type type : elementTypes)
    block.addArgument(getSignlessType(type), loc);
  OpBuilder builder(loc.getContext());
  builder.setInsertionPointToEnd(&block);
  result = emit(builder, loc, block.getArguments());
}

/// What common processors make of NaN and of what an integer cannot hold. LLVM
/// leaves it open, and then each kernel with such a constant has bits of its
/// own.
static Attribute convertBeyondRange(arith::FPToSIOp op) {
  return IntegerAttr::get(
      op.getType(),
      APInt::getSignedMinValue(op.getType().getIntOrFloatBitWidth()));
}

Attribute ScalarFunction::evaluate(ArrayRef<Attribute> scalars) {
  DenseMap<Value, Attribute> known;
  for (auto [argument, scalar] : llvm::zip_equal(block.getArguments(), scalars))
    known[argument] = scalar;
  for (Operation &op : block) {
    Attribute constant;
    if (matchPattern(&op, m_Constant(&constant))) {
      known[op.getResult(0)] = constant;
      continue;
    }
    SmallVector<Attribute> operands = llvm::map_to_vector(
        op.getOperands(), [&](Value v) { return known.lookup(v); });
    SmallVector<OpFoldResult> folded;
    if (failed(op.fold(operands, folded)) || folded.size() != 1) {
      auto toInteger = dyn_cast<arith::FPToSIOp>(&op);
      if (!toInteger)
        return nullptr;
      folded = {convertBeyondRange(toInteger)};
    }
    auto value = dyn_cast<Value>(folded[0]);
    known[op.getResult(0)] =
        value ? known.lookup(value) : cast<Attribute>(folded[0]);
    if (!known.lookup(op.getResult(0)))
      return nullptr;
  }
  return known.lookup(result);
}

} // namespace partita::nn
