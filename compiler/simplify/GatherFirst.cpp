//===- GatherFirst.cpp - Rows of weights before what is made of them ------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Rates.h"
#include "compiler/simplify/Passes.h"
#include "dialects/nn/fold/EmptyTensors.h"
#include "dialects/nn/grad/Term.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using partita::nn::grad::Shape;
using partita::nn::grad::Term;

namespace partita::simplify {

#define GEN_PASS_DEF_GATHERFIRSTPASS
#include "compiler/simplify/Passes.h.inc"

namespace {

/// Whether a reshape keeps the first dimension.
bool keepsRows(nn::ReshapeOp op) {
  ArrayRef<int64_t> from = op.getX().getType().getShape(),
                    to = op.getType().getShape();
  return !from.empty() && !to.empty() && from.front() == to.front();
}

/// The position among the dimensions of what a broadcast reads, or -1.
int64_t findDim(nn::BroadcastOp op, int64_t dim) {
  const auto *found = llvm::find(op.getDims(), dim);
  return found == op.getDims().end() ? -1 : found - op.getDims().begin();
}

bool isRepeated(nn::BroadcastOp op, int64_t dim) {
  const int64_t inner = findDim(op, dim);
  return inner >= 0 &&
         op.getX().getType().getDimSize(inner) != op.getType().getDimSize(dim);
}

bool keepsAll(nn::SliceOp op, int64_t dim) {
  return op.getX().getType().getDimSize(dim) == op.getType().getDimSize(dim) &&
         op.getStrides()[dim] == 1;
}

/// The slices of a tensor along `dim` that indices choose.
class Gatherer {
public:
  Gatherer(nn::GatherOp op) : b(op.getLoc(), op), indices(op.getIndices()) {}

  /// Bytes of what is read in place of a tensor that was computed of it.
  int64_t countBytes(Value x, int64_t dim) const {
    Operation *op = x.getDefiningOp();
    if (matchPattern(x, m_Constant()))
      return 0;
    if (isa_and_nonnull<nn::PointwiseOpInterface>(op)) {
      int64_t bytes = 0;
      for (Value operand : op->getOperands())
        bytes += countBytes(operand, dim);
      return bytes;
    }
    if (auto broadcast = dyn_cast_or_null<nn::BroadcastOp>(op);
        broadcast && !isRepeated(broadcast, dim)) {
      const int64_t inner = findDim(broadcast, dim);
      return inner < 0 ? nn::getByteSize(broadcast.getX().getType())
                       : countBytes(broadcast.getX(), inner);
    }
    if (auto reshape = dyn_cast_or_null<nn::ReshapeOp>(op);
        reshape && dim == 0 && keepsRows(reshape))
      return countBytes(reshape.getX(), 0);
    if (auto slice = dyn_cast_or_null<nn::SliceOp>(op);
        slice && keepsAll(slice, dim))
      return countBytes(slice.getX(), dim);
    return nn::getByteSize(x.getType());
  }

  Value gather(Value x, int64_t dim) {
    Operation *op = x.getDefiningOp();
    const RankedTensorType type = getResult(x, dim);
    DenseElementsAttr constant;
    if (matchPattern(x, m_Constant(&constant)) && constant.isSplat())
      return nn::ConstantOp::create(b, type, constant.resizeSplat(type));
    if (isa_and_nonnull<nn::PointwiseOpInterface>(op)) {
      SmallVector<Value> operands;
      for (Value operand : op->getOperands())
        operands.push_back(gather(operand, dim));
      Operation *copy = b.clone(*op);
      copy->setOperands(operands);
      copy->getResult(0).setType(type);
      return copy->getResult(0);
    }
    if (auto broadcast = dyn_cast_or_null<nn::BroadcastOp>(op);
        broadcast && !isRepeated(broadcast, dim))
      return gather(broadcast, dim, type);
    if (auto reshape = dyn_cast_or_null<nn::ReshapeOp>(op);
        reshape && dim == 0 && keepsRows(reshape))
      return Term(b, gather(reshape.getX(), 0)).reshape(type.getShape());
    if (auto slice = dyn_cast_or_null<nn::SliceOp>(op);
        slice && keepsAll(slice, dim)) {
      const Term x(b, gather(slice.getX(), dim));
      return x.slice(replaced(slice.getStarts(), dim, 0),
                     replaced(slice.getLimits(), dim, -1),
                     replaced(slice.getStrides(), dim, 1));
    }
    return nn::GatherOp::create(b, type, x, indices, dim);
  }

private:
  /// `of` by dimension; `number` for those that the indices make of one, or
  /// their sizes if it is -1.
  Shape replaced(ArrayRef<int64_t> of, int64_t dim, int64_t number) const {
    Shape result(of.take_front(dim));
    for (int64_t size : nn::getTensorType(indices).getShape())
      result.push_back(number < 0 ? size : number);
    llvm::append_range(result, of.drop_front(dim + 1));
    return result;
  }

  RankedTensorType getResult(Value x, int64_t dim) const {
    auto type = nn::getTensorType(x);
    return RankedTensorType::get(replaced(type.getShape(), dim, -1),
                                 type.getElementType());
  }

  Value gather(nn::BroadcastOp op, int64_t dim, RankedTensorType type) {
    const int64_t inner = findDim(op, dim),
                  count = nn::getTensorType(indices).getRank();
    Shape dims;
    for (int64_t to : op.getDims()) {
      if (to != dim)
        dims.push_back(to < dim ? to : to + count - 1);
      else
        for (int64_t i = 0; i < count; ++i)
          dims.push_back(dim + i);
    }
    const Value x = inner < 0 ? op.getX() : gather(op.getX(), inner);
    return Term(b, x).broadcast(dims, type.getShape());
  }

  ImplicitLocOpBuilder b;
  Value indices;
};

struct GatherFirstPass : impl::GatherFirstPassBase<GatherFirstPass> {
  void runOnOperation() override {
    SmallVector<nn::GatherOp> gathers;
    getOperation().walk([&](nn::GatherOp op) { gathers.push_back(op); });
    for (nn::GatherOp op : gathers) {
      const auto dim = static_cast<int64_t>(op.getDim());
      Gatherer gatherer(op);
      // A table that others read, too, is there all the same.
      if (!op.getX().hasOneUse() || nn::hasNoElements(op.getX().getType()) ||
          2 * gatherer.countBytes(op.getX(), dim) >
              nn::getByteSize(op.getX().getType()) ||
          !analysis::isKnownAtLoad(op.getX()) || analysis::isKnownAtLoad(op))
        continue;
      op.replaceAllUsesWith(gatherer.gather(op.getX(), dim));
      op.erase();
    }
  }
};

} // namespace
} // namespace partita::simplify
