//===- NNOrdered.cpp - What depends on the order of elements --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"
#include "dialects/nn/grad/Term.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using partita::nn::grad::Shape;
using partita::nn::grad::Term;

namespace partita::nn {

/// `steps`: operations on elements. `sequential`: of them, one after another.
static Cost orderedCost(Operation *op, int64_t steps, int64_t sequential) {
  Cost cost = makeCost(op, steps, CostKind::reduction);
  cost.sequential = sequential;
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
  return verifyDim(*this, getDim(), getType().getRank()); // C1
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

LogicalResult UpdateSliceOp::verify() {
  RankedTensorType x = getX().getType(), update = getUpdate().getType(),
                   start = getStart().getType();
  const int64_t dim = getDim();
  if (dim < 1 || dim >= x.getRank()) // C1
    return emitOpError("cannot write along dimension ") << dim << " of " << x;
  Shape fits(x.getShape());
  if (update.getRank() == x.getRank())
    fits[dim] = update.getDimSize(dim);
  if (update.getElementType() != x.getElementType() ||
      update.getShape() != ArrayRef(fits) || fits[dim] < 1 ||
      fits[dim] > x.getDimSize(dim)) // C2
    return emitOpError("cannot write ")
           << update << " into " << x << " along dimension " << dim;
  if (start.getShape() != x.getShape().take_front(1)) // C3
    return emitOpError("has places ") << start << " for the samples of " << x;
  return success();
}

/// What is not written is copied, unless the update can be written where x
/// lies, as in a state.
Cost UpdateSliceOp::getCost() {
  Cost cost = orderedCost(*this, getUpdate().getType().getNumElements(), 0);
  cost.kind = CostKind::movement;
  Value x = getX();
  if (auto argument = dyn_cast<BlockArgument>(x))
    if (auto cluster = dyn_cast<ClusterOp>(argument.getOwner()->getParentOp()))
      x = cluster->getOperand(argument.getArgNumber());
  auto parameter = x.getDefiningOp<ParameterOp>();
  if (parameter && parameter.getState())
    cost.bytes = getByteSize(getStart().getType()) +
                 2 * getByteSize(getUpdate().getType());
  return cost;
}

void expand(UpdateSliceOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  const Term x(b, op.getX()), update(b, op.getUpdate()),
      start(b, op.getStart());
  const int64_t dim = op.getDim(), size = x.shape()[dim],
                count = update.shape()[dim];
  const Shape places = {x.shape()[0], size};
  // How far a place is behind the first one, of all that follow in the circle.
  const auto type = RankedTensorType::get(places, b.getI64Type());
  const Term numbers(b, IotaOp::create(b, type, 1));
  const Term sizes = numbers.splat(static_cast<double>(size));
  auto modulo = [&](Term value) {
    return value.make<RemOp>(type, value, sizes);
  };
  const Term first = start.broadcast({0}, places);
  const Term behind = modulo(modulo(numbers - first) + sizes);
  const Term isWritten = behind < static_cast<double>(count) && first >= 0.0;
  auto spread = [&](Term ofPlaces) {
    return ofPlaces.broadcast({0, dim}, x.shape());
  };
  Term written;
  if (count == 1) {
    Shape others;
    SmallVector<int64_t> dims;
    for (int64_t i = 0; i < x.rank(); ++i)
      if (i != dim) {
        others.push_back(x.shape()[i]);
        dims.push_back(i);
      }
    written = update.reshape(others).broadcast(dims, x.shape());
  } else {
    const Term last = behind.splat(static_cast<double>(count - 1));
    const Term from = behind.make<MinOp>(type, behind, last);
    written = x.make<GatherElementsOp>(x.type(), update, spread(from), dim);
  }
  op.replaceAllUsesWith(select(spread(isWritten), written, x).get());
  op.erase();
}

} // namespace partita::nn
