//===- NNInterfaces.cpp - What pointwise ops have in common ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNInterfaces.h"
#include "dialects/nn/NNDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

#include "dialects/nn/NNAttrInterfaces.cpp.inc"
#include "dialects/nn/NNInterfaces.cpp.inc"

namespace partita::nn {

bool isTranscendental(Operation *op) {
  auto pointwise = dyn_cast<PointwiseOpInterface>(op);
  return pointwise && pointwise.getFlopsPerElement() >= 10;
}

bool isDivision(Operation *op) {
  auto pointwise = dyn_cast<PointwiseOpInterface>(op);
  return pointwise && pointwise.getFlopsPerElement() > 1 &&
         !isTranscendental(op);
}

Cost pointwiseCost(Operation *op) {
  Cost cost;
  int64_t perElement = cast<PointwiseOpInterface>(op).getFlopsPerElement();
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  cost.flops = perElement * result.getNumElements();
  for (Type type : op->getOperandTypes())
    cost.bytes += getByteSize(type);
  cost.bytes += getByteSize(result);
  cost.kind = CostKind::pointwise;
  return cost;
}

Operation *buildPermutedLike(OpBuilder &builder, Operation *op,
                             ArrayRef<int64_t> perm, ValueRange operands) {
  Operation *copy = builder.clone(*op);
  copy->setOperands(operands);
  for (OpResult result : copy->getResults()) {
    auto type = cast<RankedTensorType>(result.getType());
    result.setType(RankedTensorType::get(permuted(type.getShape(), perm),
                                         type.getElementType()));
  }
  return copy;
}

Operation *PermutableOpInterface::buildPermuted(OpBuilder &builder,
                                                ArrayRef<int64_t> perm,
                                                ValueRange operands) {
  Operation *copy = buildPermutedLike(builder, *this, perm, operands);
  const SmallVector<int64_t> inverse = inversePermutation(perm);
  for (StringAttr name : copy->getName().getAttributeNames()) {
    Attribute value = copy->getAttr(name);
    if (name == "dim")
      value =
          builder.getI64IntegerAttr(inverse[cast<IntegerAttr>(value).getInt()]);
    else if (auto entries = dyn_cast_or_null<DenseI64ArrayAttr>(value))
      value = builder.getDenseI64ArrayAttr(name == "dims"
                                               ? permuted(inverse, entries)
                                               : permuted(entries, perm));
    else
      continue;
    copy->setAttr(name, value);
  }
  return copy;
}

} // namespace partita::nn
