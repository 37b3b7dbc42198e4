//===- NNOrdered.cpp - What depends on the order of elements --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace partita::nn {

/// `steps`: operations on elements. `sequential`: of them, one after another.
static Cost orderedCost(Operation *op, int64_t steps, int64_t sequential) {
  Cost cost;
  cost.flops = steps;
  cost.sequential = sequential;
  cost.bytes = getByteSize(op->getResult(0).getType());
  cost.kind = CostKind::reduction;
  for (Type type : op->getOperandTypes())
    cost.bytes += getByteSize(type);
  return cost;
}

LogicalResult TopKOp::verify() {
  RankedTensorType from = getX().getType(), to = getType();
  if (from.getRank() != 2 || to.getRank() != 2 ||
      from.getDimSize(0) != to.getDimSize(0) ||
      to.getDimSize(1) > from.getDimSize(1)) // C1
    return emitOpError("cannot choose ") << to << " from " << from;
  return success();
}

/// Each element is compared with the least that is chosen. Those that come in
/// move through the levels of a heap.
Cost TopKOp::getCost() {
  RankedTensorType from = getX().getType(), to = getType();
  int64_t depth = llvm::Log2_64_Ceil(std::max<int64_t>(to.getDimSize(1), 2));
  int64_t steps = from.getNumElements() + depth * to.getNumElements();
  return orderedCost(*this, steps, steps);
}

LogicalResult ScanOp::verify() {
  int64_t dim = getDim();
  if (dim < 0 || dim >= getType().getRank()) // C1
    return emitOpError("names dimension ")
           << dim << " of a tensor with " << getType().getRank()
           << " dimensions";
  return success();
}

/// Sums along the last dimension wait for each other. Those along another do
/// so side by side.
Cost ScanOp::getCost() {
  int64_t steps = getType().getNumElements();
  bool alone = static_cast<int64_t>(getDim()) + 1 == getType().getRank();
  return orderedCost(*this, steps, alone ? steps : 0);
}

LogicalResult ScatterOp::verify() {
  RankedTensorType x = getX().getType(), updates = getUpdates().getType(),
                   places = getPlaces().getType();
  if (x.getRank() != 2 || updates.getRank() != 2 ||
      x.getDimSize(1) != updates.getDimSize(1) ||
      x.getElementType() != updates.getElementType()) // C1
    return emitOpError("cannot write rows of ") << updates << " to " << x;
  if (places.getRank() != 1 ||
      places.getDimSize(0) != updates.getDimSize(0)) // C2
    return emitOpError("has ") << places << " for the rows of " << updates;
  return success();
}

Cost ScatterOp::getCost() {
  int64_t places = getPlaces().getType().getNumElements();
  return orderedCost(*this, places + getUpdates().getType().getNumElements(),
                     places);
}

} // namespace partita::nn
