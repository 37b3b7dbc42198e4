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
#include "mlir/Dialect/Utils/IndexingUtils.h"

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

int64_t getTouchedBytes(Operation *op) {
  int64_t bytes = 0;
  for (Type type : op->getOperandTypes())
    bytes += getByteSize(type);
  for (Type type : op->getResultTypes())
    bytes += getByteSize(type);
  return bytes;
}

Cost makeCost(Operation *op, int64_t flops, CostKind kind) {
  return {flops, getTouchedBytes(op), kind};
}

Cost pointwiseCost(Operation *op) {
  int64_t perElement = cast<PointwiseOpInterface>(op).getFlopsPerElement();
  int64_t elements = getTensorType(op->getResult(0)).getNumElements();
  return makeCost(op, perElement * elements, CostKind::pointwise);
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
  const SmallVector<int64_t> inverse = invertPermutationVector(perm);
  for (StringAttr name : copy->getName().getAttributeNames()) {
    Attribute value = copy->getAttr(name);
    if (name == "dim") {
      value =
          builder.getI64IntegerAttr(inverse[cast<IntegerAttr>(value).getInt()]);
    } else if (auto entries = dyn_cast_or_null<DenseI64ArrayAttr>(value)) {
      assert((name == "dims" || entries.size() == int64_t(perm.size())) &&
             "an entry a dimension");
      value = builder.getDenseI64ArrayAttr(name == "dims"
                                               ? permuted(inverse, entries)
                                               : permuted(entries, perm));
    } else {
      continue;
    }
    copy->setAttr(name, value);
  }
  return copy;
}

} // namespace partita::nn
