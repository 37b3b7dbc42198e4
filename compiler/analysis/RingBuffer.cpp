//===- RingBuffer.cpp - States whose entries lie in a ring ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/RingBuffer.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using partita::nn::grad::Term;

namespace partita::analysis {
namespace {

/// Entry i is entry (i + shift) mod n of x, where shift is not negative.
Term gather(Term x, Term shift, int64_t dim) {
  const int64_t size = x.shape()[dim];
  auto type = RankedTensorType::get({size}, shift.element());
  const Term order = x.make<nn::IotaOp>(type, 0),
             last = order.splat(double(size));
  const Term sum = order + shift.broadcast({}, {size}),
             place = x.make<nn::RemOp>(sum.get(), last.get());
  return x.make<nn::GatherOp>(x.type(), x.get(), place.get(), dim);
}

/// Whether each element is its index.
bool isOrder(Value value) {
  if (value.getDefiningOp<nn::IotaOp>())
    return true;
  DenseElementsAttr constant;
  if (!matchPattern(value, m_Constant(&constant)) || constant.isSplat())
    return false;
  return llvm::all_of(
      llvm::enumerate(constant.getValues<APInt>()),
      [](const auto &entry) { return entry.value() == entry.index(); });
}

} // namespace

Term readRing(Term ring, Term place, int64_t dim) {
  return gather(ring, place, dim);
}

Term orderAsRing(Term entries, Term place, int64_t dim) {
  return gather(entries, double(entries.shape()[dim]) - place, dim);
}

std::optional<ReadRing> getReadRing(Value value) {
  auto gather = value.getDefiningOp<nn::GatherOp>();
  if (!gather || gather.getType() != gather.getX().getType())
    return std::nullopt;
  const auto dim = static_cast<int64_t>(gather.getDim());
  auto rem = gather.getIndices().getDefiningOp<nn::RemOp>();
  DenseElementsAttr size;
  if (!rem || rem.getType().getRank() != 1 ||
      !matchPattern(rem.getRhs(), m_Constant(&size)) || !size.isSplat() ||
      size.getSplatValue<APInt>() != gather.getType().getDimSize(dim))
    return std::nullopt;
  auto sum = rem.getLhs().getDefiningOp<nn::AddOp>();
  if (!sum)
    return std::nullopt;
  for (unsigned i : {0, 1})
    if (auto place = sum->getOperand(i).getDefiningOp<nn::BroadcastOp>();
        place && place.getX().getType().getRank() == 0 &&
        isOrder(sum->getOperand(1 - i)))
      return ReadRing{gather.getX(), place.getX(), dim};
  return std::nullopt;
}

} // namespace partita::analysis
