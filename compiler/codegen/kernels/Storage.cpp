//===- Storage.cpp - How elements lie in memory ---------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/Storage.h"

#include "dialects/nn/NNDialect.h"
#include "dialects/nn/fold/ConstantElements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

using namespace mlir;

namespace partita::codegen {

Type getStorageType(Type element) {
  if (element.isInteger(1))
    return IntegerType::get(element.getContext(), 8);
  if (element.isBF16())
    return IntegerType::get(element.getContext(), 16);
  return nn::getSignlessType(element);
}

RankedTensorType getStorageTensor(ArrayRef<int64_t> shape, Type element) {
  return RankedTensorType::get(shape, getStorageType(element));
}

Value fromStorage(OpBuilder &b, Location loc, Value x, Type element) {
  if (element.isBF16())
    return arith::BitcastOp::create(b, loc, element, x);
  if (!element.isInteger(1))
    return x;
  Value zero = arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(0));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, x, zero);
}

Value toStorage(OpBuilder &b, Location loc, Value x, Type element) {
  if (element.isBF16())
    return arith::BitcastOp::create(b, loc, b.getI16Type(), x);
  if (!element.isInteger(1))
    return x;
  return arith::ExtUIOp::create(b, loc, b.getI8Type(), x);
}

DenseElementsAttr getStorageConstant(DenseElementsAttr value,
                                     ArrayRef<int64_t> shape) {
  Type element = value.getElementType();
  RankedTensorType type = getStorageTensor(shape, element);
  SmallVector<Attribute> elements;
  elements.reserve(value.getNumElements());
  for (Attribute x : value.getValues<Attribute>()) {
    if (element.isInteger(1))
      elements.push_back(IntegerAttr::get(
          type.getElementType(), cast<IntegerAttr>(x).getValue().zext(8)));
    else if (element.isBF16())
      elements.push_back(
          IntegerAttr::get(type.getElementType(),
                           cast<FloatAttr>(x).getValue().bitcastToAPInt()));
    else
      elements.push_back(nn::toScalar(x));
  }
  return DenseElementsAttr::get(type, elements);
}

SmallVector<int64_t> squeeze(ArrayRef<int64_t> shape) {
  return llvm::filter_to_vector(shape, [](int64_t size) { return size != 1; });
}

Value reshapeTensor(OpBuilder &b, Location loc, Value tensor,
                    ArrayRef<int64_t> shape) {
  auto source = cast<RankedTensorType>(tensor.getType());
  if (source.getShape() == shape)
    return tensor;
  auto target = RankedTensorType::get(shape, source.getElementType());
  // Dimensions of extent 0 have no reassociation; there is nothing to move.
  if (source.getNumElements() == 0)
    return tensor::EmptyOp::create(b, loc, shape, source.getElementType());
  if (std::optional<SmallVector<ReassociationIndices>> groups =
          getReassociationIndicesForReshape(source, target)) {
    if (source.getRank() > target.getRank())
      return tensor::CollapseShapeOp::create(b, loc, target, tensor, *groups);
    return tensor::ExpandShapeOp::create(b, loc, target, tensor, *groups);
  }
  Value flat = reshapeTensor(b, loc, tensor, {source.getNumElements()});
  return reshapeTensor(b, loc, flat, shape);
}

} // namespace partita::codegen
