//===- EvaluateShape.cpp - Ops that move elements, as index changes -------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/kernels/Evaluate.h"
#include "compiler/codegen/cpu/kernels/Storage.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/nn/fold/ScalarEmit.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace partita::codegen {

static ArrayRef<int64_t> getShape(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// An index that counts from the end if it is negative, clamped to the size.
static Index wrapIndex(OpBuilder &b, Location loc, Value which, int64_t count) {
  Value index = arith::IndexCastOp::create(b, loc, b.getIndexType(), which);
  Value size = arith::ConstantIndexOp::create(b, loc, count);
  Value last = arith::ConstantIndexOp::create(b, loc, count - 1);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value negative =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, index, zero);
  Value wrapped = arith::AddIOp::create(b, loc, index, size);
  index = arith::SelectOp::create(b, loc, negative, wrapped, index);
  index = arith::MaxSIOp::create(b, loc, index, zero);
  index = arith::MinSIOp::create(b, loc, index, last);
  return {{}, index};
}

Value Evaluator::evaluateShapeOp(OpBuilder &b, Operation *op,
                                 ArrayRef<Index> position) {
  Location loc = op->getLoc();
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](nn::ConstantOp) { return evaluateConstant(b, op, position); })
      .Case([&](nn::ReshapeOp) { return evaluateReshape(b, op, position); })
      .Case([&](nn::PadOp) { return evaluatePad(b, op, position); })
      .Case([&](nn::GatherOp) { return evaluateGather(b, op, position); })
      .Case([&](nn::GatherElementsOp gather) -> Value {
        Value which = evaluate(b, gather.getIndices(), position);
        if (!which)
          return {};
        SmallVector<Index> source(position);
        int64_t dim = gather.getDim();
        source[dim] = wrapIndex(b, loc, which, getShape(gather.getX())[dim]);
        return evaluate(b, gather.getX(), source);
      })
      .Case([&](nn::ConcatOp) { return evaluateConcat(b, op, position, 0, 0); })
      .Case([&](nn::TransposeOp transpose) {
        SmallVector<Index> source(position.size());
        for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
          source[from] = position[to];
        return evaluate(b, transpose.getX(), source);
      })
      .Case([&](nn::BroadcastOp broadcast) {
        SmallVector<Index> source;
        for (auto [size, dim] :
             llvm::zip_equal(getShape(broadcast.getX()), broadcast.getDims()))
          source.push_back(size == 1 ? constant(0) : position[dim]);
        return evaluate(b, broadcast.getX(), source);
      })
      .Case([&](nn::SliceOp slice) {
        SmallVector<Index> source;
        for (auto [index, start, stride] :
             llvm::zip_equal(position, slice.getStarts(), slice.getStrides()))
          source.push_back(add(b, mul(b, index, stride), start));
        return evaluate(b, slice.getX(), source);
      })
      .Case([&](nn::ReverseOp reverse) {
        SmallVector<Index> source(position);
        for (int64_t dim : reverse.getDims())
          source[dim] = add(b, mul(b, source[dim], -1),
                            getShape(reverse.getX())[dim] - 1);
        return evaluate(b, reverse.getX(), source);
      })
      .Case([&](nn::IotaOp iota) -> Value {
        Type element = iota.getType().getElementType();
        Value index = toValue(b, position[iota.getDim()]);
        Value wide = arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
        return nn::scalar::cast(b, loc, wide, b.getI64Type(), element, true);
      })
      .Default([&](Operation *) -> Value {
        op->emitError() << "'" << op->getName()
                        << "' cannot be compiled for a CPU";
        return {};
      });
}

Value Evaluator::evaluateConstant(OpBuilder &b, Operation *op,
                                  ArrayRef<Index> position) {
  auto constant = cast<nn::ConstantOp>(op);
  auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (!dense) {
    op->emitError("constant is not stored densely; pass it as a weight");
    return {};
  }
  Type element = dense.getElementType();
  if (dense.isSplat())
    return arith::ConstantOp::create(
        b, op->getLoc(),
        getScalarAttr(element, dense.getSplatValue<Attribute>()));
  Value tensor = arith::ConstantOp::create(
      outer, op->getLoc(),
      getStorageConstant(dense, squeeze(dense.getType().getShape())));
  Leaf leaf{tensor, element};
  leaves[op->getResult(0)] = leaf;
  return read(b, op->getResult(0), leaf, position);
}

bool Evaluator::viewLeaf(Operation *reshape) {
  Value source = reshape->getOperand(0);
  if (auto below = source.getDefiningOp<nn::ReshapeOp>())
    if (!leaves.contains(source))
      viewLeaf(below);
  auto it = leaves.find(source);
  if (it == leaves.end())
    return false;
  Leaf leaf = it->second;
  leaf.tensor = reshapeTensor(outer, reshape->getLoc(), leaf.tensor,
                              squeeze(getShape(reshape->getResult(0))));
  leaves[reshape->getResult(0)] = leaf;
  return true;
}

Value Evaluator::evaluateReshape(OpBuilder &b, Operation *op,
                                 ArrayRef<Index> position) {
  Value source = op->getOperand(0), result = op->getResult(0);
  if (viewLeaf(op))
    return read(b, result, leaves[result], position);
  Location loc = op->getLoc();
  ArrayRef<int64_t> from = getShape(source), to = getShape(result);
  if (llvm::is_contained(from, 0))
    return evaluate(b, source, SmallVector<Index>(from.size(), constant(0)));
  // Walk both shapes in groups of dimensions with equal products.
  SmallVector<Index> indices(from.size(), constant(0));
  size_t i = 0, j = 0;
  while (i < from.size()) {
    size_t firstFrom = i, firstTo = j;
    int64_t fromSize = from[i++], toSize = 1;
    while (fromSize != toSize) {
      if (toSize < fromSize)
        toSize *= to[j++];
      else
        fromSize *= from[i++];
    }
    Index linear = constant(0);
    for (size_t k = firstTo; k < j; ++k)
      if (to[k] != 1)
        linear = add(b, mul(b, linear, to[k]), position[k]);
    size_t wide = llvm::count_if(from.slice(firstFrom, i - firstFrom),
                                 [](int64_t size) { return size != 1; });
    if (wide <= 1) {
      for (size_t k = firstFrom; k < i; ++k)
        if (from[k] != 1)
          indices[k] = linear;
      continue;
    }
    Value rest = toValue(b, linear);
    for (size_t k = i; k-- > firstFrom;) {
      if (from[k] == 1)
        continue;
      Value size = arith::ConstantIndexOp::create(b, loc, from[k]);
      indices[k] = {{}, arith::RemUIOp::create(b, loc, rest, size)};
      rest = arith::DivUIOp::create(b, loc, rest, size);
    }
  }
  return evaluate(b, source, indices);
}

Value Evaluator::evaluatePad(OpBuilder &b, Operation *op,
                             ArrayRef<Index> position) {
  auto pad = cast<nn::PadOp>(op);
  ArrayRef<int64_t> shape = getShape(pad.getX());
  if (llvm::is_contained(shape, 0))
    return evaluate(b, pad.getValue(), {});
  Value inside;
  SmallVector<Index> source;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    int64_t low = pad.getLow()[dim], high = pad.getHigh()[dim];
    if (low || high)
      inside = inRange(b, inside, position[dim], low, low + shape[dim]);
    source.push_back(position[dim]);
  }
  auto inner = [&](OpBuilder &arm) {
    SmallVector<Index> moved;
    for (auto [index, low] : llvm::zip_equal(source, pad.getLow()))
      moved.push_back(add(arm, index, -low));
    return evaluate(arm, pad.getX(), moved);
  };
  if (!inside)
    return inner(b);
  Type scalar = nn::getSignlessType(pad.getType().getElementType());
  return guard(b, op->getLoc(), inside, scalar, inner, [&](OpBuilder &arm) {
    return evaluate(arm, pad.getValue(), {});
  });
}

Value Evaluator::evaluateConcat(OpBuilder &b, Operation *op,
                                ArrayRef<Index> position, unsigned first,
                                int64_t start) {
  auto concat = cast<nn::ConcatOp>(op);
  int64_t dim = concat.getDim();
  Value operand = op->getOperand(first);
  int64_t end = start + getShape(operand)[dim];
  auto inner = [&](OpBuilder &arm) {
    SmallVector<Index> moved(position);
    moved[dim] = add(arm, moved[dim], -start);
    return evaluate(arm, operand, moved);
  };
  if (first + 1 == op->getNumOperands())
    return inner(b);
  if (start == end)
    return evaluateConcat(b, op, position, first + 1, end);
  Value inside = inRange(b, {}, position[dim], start, end);
  Type scalar = nn::getSignlessType(concat.getType().getElementType());
  return guard(b, op->getLoc(), inside, scalar, inner, [&](OpBuilder &arm) {
    return evaluateConcat(arm, op, position, first + 1, end);
  });
}

Value Evaluator::evaluateGather(OpBuilder &b, Operation *op,
                                ArrayRef<Index> position) {
  auto gather = cast<nn::GatherOp>(op);
  Location loc = op->getLoc();
  int64_t dim = gather.getDim();
  int64_t indexRank = getShape(gather.getIndices()).size();
  Value which =
      evaluate(b, gather.getIndices(), position.slice(dim, indexRank));
  if (!which)
    return {};
  Index index = wrapIndex(b, loc, which, getShape(gather.getX())[dim]);
  SmallVector<Index> source(position.take_front(dim));
  source.push_back(index);
  llvm::append_range(source, position.drop_front(dim + indexRank));
  return evaluate(b, gather.getX(), source);
}

} // namespace partita::codegen
