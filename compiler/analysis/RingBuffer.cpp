//===- RingBuffer.cpp - States whose entries lie in a ring ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/RingBuffer.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using partita::nn::grad::Shape;
using partita::nn::grad::Term;

namespace partita::analysis {
namespace {

/// Entry i is entry (i + shift) mod n of x, where shift is not negative: a
/// scalar, or one for each entry of dimension `row`.
Term gather(Term x, Term shift, int64_t dim, int64_t row) {
  const int64_t size = x.shape()[dim];
  Shape shape = {size};
  SmallVector<int64_t> rows;
  if (shift.rank() > 0) {
    shape.insert(shape.begin(), x.shape()[row]);
    rows = {0};
  }
  auto type = RankedTensorType::get(shape, shift.element());
  const Term order = x.make<nn::IotaOp>(type, shape.size() - 1),
             last = order.splat(double(size));
  const Term sum = order + shift.broadcast(rows, shape),
             place = x.make<nn::RemOp>(sum.get(), last.get());
  if (rows.empty())
    return x.make<nn::GatherOp>(x.type(), x.get(), place.get(), dim);
  return x.make<nn::GatherElementsOp>(
      x.type(), x.get(), place.broadcast({row, dim}, x.shape()).get(), dim);
}

/// Whether each element is its index along the last dimension.
bool isOrder(Value value) {
  RankedTensorType type = nn::getTensorType(value);
  const int64_t last = type.getRank() - 1;
  if (auto iota = value.getDefiningOp<nn::IotaOp>())
    return static_cast<int64_t>(iota.getDim()) == last;
  if (auto broadcast = value.getDefiningOp<nn::BroadcastOp>())
    return broadcast.getDims() == ArrayRef(last) && isOrder(broadcast.getX());
  DenseElementsAttr constant;
  if (!matchPattern(value, m_Constant(&constant)) || constant.isSplat())
    return false;
  return llvm::all_of(
      llvm::enumerate(constant.getValues<APInt>()), [&](const auto &entry) {
        return entry.value() == entry.index() % type.getDimSize(last);
      });
}

/// The shift of what `gather` has made: `places` are the indices of `size`
/// entries, by row if they have two dimensions.
Value getShift(Value places, int64_t size) {
  auto rem = places.getDefiningOp<nn::RemOp>();
  DenseElementsAttr last;
  if (!rem || !matchPattern(rem.getRhs(), m_Constant(&last)) ||
      !last.isSplat() || last.getSplatValue<APInt>() != size)
    return {};
  auto sum = rem.getLhs().getDefiningOp<nn::AddOp>();
  if (!sum)
    return {};
  for (unsigned i : {0, 1})
    if (auto shift = sum->getOperand(i).getDefiningOp<nn::BroadcastOp>();
        shift &&
        shift.getX().getType().getRank() + 1 == rem.getType().getRank() &&
        (shift.getDims().empty() || shift.getDims() == ArrayRef<int64_t>(0)) &&
        isOrder(sum->getOperand(1 - i)))
      return shift.getX();
  return {};
}

} // namespace

Term readRing(Term ring, Term place, int64_t dim, int64_t row) {
  return gather(ring, place, dim, row);
}

Term orderAsRing(Term entries, Term place, int64_t dim, int64_t row) {
  return gather(entries, double(entries.shape()[dim]) - place, dim, row);
}

std::optional<ReadRing> getReadRing(Value value) {
  if (auto gather = value.getDefiningOp<nn::GatherOp>()) {
    const auto dim = static_cast<int64_t>(gather.getDim());
    if (gather.getType() == gather.getX().getType() &&
        gather.getIndices().getType().getRank() == 1)
      if (Value place =
              getShift(gather.getIndices(), gather.getType().getDimSize(dim)))
        return ReadRing{gather.getX(), place, dim};
    return std::nullopt;
  }
  auto gather = value.getDefiningOp<nn::GatherElementsOp>();
  if (!gather || gather.getType() != gather.getX().getType())
    return std::nullopt;
  const auto dim = static_cast<int64_t>(gather.getDim());
  auto places = gather.getIndices().getDefiningOp<nn::BroadcastOp>();
  if (!places || places.getDims().size() != 2 || places.getDims()[1] != dim ||
      places.getX().getType().getDimSize(1) != gather.getType().getDimSize(dim))
    return std::nullopt;
  const int64_t row = places.getDims()[0];
  Value place = getShift(places.getX(), gather.getType().getDimSize(dim));
  if (!place || nn::getTensorType(place).getDimSize(0) !=
                    gather.getType().getDimSize(row))
    return std::nullopt;
  return ReadRing{gather.getX(), place, dim, row};
}

} // namespace partita::analysis
