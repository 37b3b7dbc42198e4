//===- Reductions.cpp - Ops that combine many elements into one -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/kernels/Reductions.h"

#include "compiler/codegen/cpu/kernels/Storage.h"
#include "dialects/nn/fold/ScalarEmit.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace partita::codegen {

static RankedTensorType getType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Sums of narrow floats are kept in f32.
static Type getAccumulator(Type element) {
  if (isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32)
    return Float32Type::get(element.getContext());
  return element;
}

static Value widen(OpBuilder &b, Location loc, Value x, Type from, Type to) {
  return x ? nn::scalar::cast(b, loc, x, from, to, true) : x;
}

static TypedAttr getNeutral(nn::ReduceKind kind, Type type) {
  Type scalar = nn::getSignlessType(type);
  if (auto number = dyn_cast<FloatType>(scalar)) {
    const llvm::fltSemantics &semantics = number.getFloatSemantics();
    switch (kind) {
    case nn::ReduceKind::sum:
      return FloatAttr::get(number, APFloat::getZero(semantics));
    case nn::ReduceKind::prod:
      return FloatAttr::get(number, APFloat::getOne(semantics));
    case nn::ReduceKind::max:
      return FloatAttr::get(number, APFloat::getInf(semantics, true));
    case nn::ReduceKind::min:
      return FloatAttr::get(number, APFloat::getInf(semantics));
    }
  }
  unsigned width = type.getIntOrFloatBitWidth();
  bool isSigned = !type.isUnsignedInteger() && width > 1;
  APInt value(width, 0);
  switch (kind) {
  case nn::ReduceKind::sum:
    break;
  case nn::ReduceKind::prod:
    value = APInt(width, 1);
    break;
  case nn::ReduceKind::max:
    value = isSigned ? APInt::getSignedMinValue(width) : APInt(width, 0);
    break;
  case nn::ReduceKind::min:
    value =
        isSigned ? APInt::getSignedMaxValue(width) : APInt::getMaxValue(width);
    break;
  }
  unsigned stored = scalar.getIntOrFloatBitWidth();
  return IntegerAttr::get(scalar,
                          isSigned ? value.sext(stored) : value.zext(stored));
}

static void setCombiner(Reduction &reduction, nn::ReduceKind kind) {
  Type type = reduction.accumulator;
  Location loc = reduction.op->getLoc();
  bool ignoreNaN =
      reduction.op->hasAttr(kIgnoreNaNAttr) && isa<FloatType>(type);
  reduction.neutral = getNeutral(kind, type);
  reduction.combine = [=](OpBuilder &b, Value all, Value x) -> Value {
    switch (kind) {
    case nn::ReduceKind::sum:
      return nn::scalar::add(b, loc, all, x);
    case nn::ReduceKind::prod:
      return nn::scalar::mul(b, loc, all, x);
    case nn::ReduceKind::max:
      if (ignoreNaN)
        return arith::MaxNumFOp::create(b, loc, all, x);
      return nn::scalar::max(b, loc, all, x, type);
    case nn::ReduceKind::min:
      return nn::scalar::min(b, loc, all, x, type);
    }
    return {};
  };
}

static Reduction describeReduce(nn::ReduceOp op) {
  Reduction reduction{.op = op};
  Type element = getType(op.getX()).getElementType();
  reduction.accumulator = getAccumulator(element);
  ArrayRef<int64_t> dims = op.getDims();
  for (int64_t dim : dims)
    reduction.sizes.push_back(getType(op.getX()).getDimSize(dim));
  setCombiner(reduction, op.getKind());
  Type wide = reduction.accumulator;
  reduction.element = [=](Evaluator &evaluator, OpBuilder &b,
                          ArrayRef<Index> kept, ArrayRef<Index> reduced) {
    SmallVector<Index> source;
    unsigned nextKept = 0, nextReduced = 0;
    for (int64_t dim = 0; dim < getType(op->getOperand(0)).getRank(); ++dim)
      source.push_back(llvm::is_contained(dims, dim) ? reduced[nextReduced++]
                                                     : kept[nextKept++]);
    Value x = evaluator.evaluate(b, op->getOperand(0), source);
    return widen(b, op->getLoc(), x, element, wide);
  };
  return reduction;
}

static Reduction describeDot(nn::DotOp op) {
  Reduction reduction{.op = op};
  reduction.accumulator = getAccumulator(op.getType().getElementType());
  for (int64_t dim : op.getLhsContract())
    reduction.sizes.push_back(getType(op.getLhs()).getDimSize(dim));
  setCombiner(reduction, nn::ReduceKind::sum);
  Type wide = reduction.accumulator;
  reduction.element = [=](Evaluator &evaluator, OpBuilder &b,
                          ArrayRef<Index> position,
                          ArrayRef<Index> reduced) mutable -> Value {
    size_t nextFree = op.getLhsBatch().size();
    auto evaluateSide = [&](Value operand, ArrayRef<int64_t> batch,
                            ArrayRef<int64_t> contract) {
      SmallVector<Index> source;
      for (int64_t dim = 0; dim < getType(operand).getRank(); ++dim) {
        const int64_t *inBatch = llvm::find(batch, dim);
        const int64_t *inContract = llvm::find(contract, dim);
        if (inBatch != batch.end())
          source.push_back(position[inBatch - batch.begin()]);
        else if (inContract != contract.end())
          source.push_back(reduced[inContract - contract.begin()]);
        else
          source.push_back(position[nextFree++]);
      }
      return widen(b, op.getLoc(), evaluator.evaluate(b, operand, source),
                   getType(operand).getElementType(), wide);
    };
    Value lhs =
        evaluateSide(op.getLhs(), op.getLhsBatch(), op.getLhsContract());
    Value rhs =
        evaluateSide(op.getRhs(), op.getRhsBatch(), op.getRhsContract());
    return lhs && rhs ? nn::scalar::mul(b, op.getLoc(), lhs, rhs) : Value();
  };
  return reduction;
}

/// Positions under a window: out * stride + inner * dilation - low, with a test
/// where the window reaches over the border.
static Index getWindowed(Evaluator &evaluator, OpBuilder &b, Index out,
                         Index inner, int64_t stride, int64_t dilation,
                         int64_t low, int64_t high, int64_t size,
                         Value &inside) {
  Index position = evaluator.add(b, evaluator.mul(b, out, stride),
                                 evaluator.mul(b, inner, dilation));
  position = evaluator.add(b, position, -low);
  if (low || high)
    inside = evaluator.inRange(b, inside, position, 0, size);
  return position;
}

static Reduction describeConv(nn::ConvOp op) {
  Reduction reduction{.op = op};
  RankedTensorType weights = getType(op.getWeights());
  reduction.accumulator = getAccumulator(op.getType().getElementType());
  reduction.sizes.assign(weights.getShape().begin() + 1,
                         weights.getShape().end());
  setCombiner(reduction, nn::ReduceKind::sum);
  Type wide = reduction.accumulator;
  TypedAttr zero = reduction.neutral;
  reduction.element = [=](Evaluator &evaluator, OpBuilder &b,
                          ArrayRef<Index> position,
                          ArrayRef<Index> reduced) mutable -> Value {
    Location loc = op.getLoc();
    int64_t channelDim = op.getChannelDim(), first = op.getFirstSpatialDim();
    Index out = position[channelDim], group = evaluator.constant(0);
    if (op.getGroups() > 1) {
      Value perGroup = arith::ConstantIndexOp::create(
          b, loc, weights.getDimSize(0) / op.getGroups());
      group = {
          {},
          arith::DivUIOp::create(b, loc, evaluator.toValue(b, out), perGroup)};
    }
    SmallVector<Index> source(position.size(), position[0]);
    source[channelDim] = evaluator.add(
        b, evaluator.mul(b, group, weights.getDimSize(1)), reduced[0]);
    Value inside;
    for (auto i : llvm::seq<size_t>(op.getStrides().size()))
      source[first + i] = getWindowed(
          evaluator, b, position[first + i], reduced[i + 1], op.getStrides()[i],
          op.getDilations()[i], op.getPadsLow()[i], op.getPadsHigh()[i],
          getType(op.getX()).getDimSize(first + i), inside);
    SmallVector<Index> filter{out};
    llvm::append_range(filter, reduced);
    auto product = [&](OpBuilder &arm) -> Value {
      Value x = widen(arm, loc, evaluator.evaluate(arm, op.getX(), source),
                      getType(op.getX()).getElementType(), wide);
      Value w =
          widen(arm, loc, evaluator.evaluate(arm, op.getWeights(), filter),
                weights.getElementType(), wide);
      return x && w ? nn::scalar::mul(arm, loc, x, w) : Value();
    };
    if (!inside)
      return product(b);
    return evaluator.guard(b, loc, inside, zero.getType(), product,
                           [&](OpBuilder &arm) -> Value {
                             return arith::ConstantOp::create(arm, loc, zero);
                           });
  };
  return reduction;
}

static Reduction describeWindow(nn::WindowReduceOp op) {
  Reduction reduction{.op = op};
  Type element = getType(op.getX()).getElementType();
  reduction.accumulator = getAccumulator(element);
  SmallVector<int64_t> windowed;
  for (auto [dim, size] : llvm::enumerate(op.getWindow()))
    if (size != 1 || op.getPadsLow()[dim] || op.getPadsHigh()[dim]) {
      windowed.push_back(dim);
      reduction.sizes.push_back(size);
    }
  setCombiner(reduction, op.getKind());
  Type wide = reduction.accumulator;
  TypedAttr neutral = reduction.neutral;
  reduction.element = [=](Evaluator &evaluator, OpBuilder &b,
                          ArrayRef<Index> position,
                          ArrayRef<Index> reduced) mutable -> Value {
    SmallVector<Index> source(position);
    for (auto dim : llvm::seq<size_t>(position.size()))
      source[dim] = evaluator.mul(b, position[dim], op.getStrides()[dim]);
    Value inside;
    for (auto [i, dim] : llvm::enumerate(windowed))
      source[dim] = getWindowed(evaluator, b, position[dim], reduced[i],
                                op.getStrides()[dim], op.getDilations()[dim],
                                op.getPadsLow()[dim], op.getPadsHigh()[dim],
                                getType(op.getX()).getDimSize(dim), inside);
    auto read = [&](OpBuilder &arm) {
      return widen(arm, op.getLoc(), evaluator.evaluate(arm, op.getX(), source),
                   element, wide);
    };
    if (!inside)
      return read(b);
    return evaluator.guard(b, op.getLoc(), inside, neutral.getType(), read,
                           [&](OpBuilder &arm) -> Value {
                             return arith::ConstantOp::create(arm, op.getLoc(),
                                                              neutral);
                           });
  };
  return reduction;
}

std::optional<Reduction> describeReduction(Operation *op) {
  return TypeSwitch<Operation *, std::optional<Reduction>>(op)
      .Case([](nn::ReduceOp op) { return describeReduce(op); })
      .Case([](nn::DotOp op) { return describeDot(op); })
      .Case([](nn::ConvOp op) { return describeConv(op); })
      .Case([](nn::WindowReduceOp op) { return describeWindow(op); })
      .Default([](Operation *) { return std::nullopt; });
}

/// Emits nested loops of the given sizes that carry `values`. `body` returns
/// what they become, or nothing on an error.
static SmallVector<Value> emitLoops(
    OpBuilder &b, Location loc, ArrayRef<int64_t> sizes,
    SmallVector<Value> values, SmallVector<Index> &indices,
    llvm::function_ref<SmallVector<Value>(OpBuilder &, SmallVector<Value>)>
        body) {
  if (indices.size() == sizes.size())
    return body(b, values);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value size = arith::ConstantIndexOp::create(b, loc, sizes[indices.size()]);
  auto loop = scf::ForOp::create(b, loc, zero, size, one, values);
  OpBuilder inner = OpBuilder::atBlockEnd(loop.getBody());
  indices.push_back({{}, loop.getInductionVar()});
  SmallVector<Value> next =
      emitLoops(inner, loc, sizes, SmallVector<Value>(loop.getRegionIterArgs()),
                indices, body);
  indices.pop_back();
  if (next.empty())
    return {};
  scf::YieldOp::create(inner, loc, next);
  return SmallVector<Value>(loop.getResults());
}

Value evaluateReduction(Evaluator &evaluator, OpBuilder &b,
                        const Reduction &reduction, ArrayRef<Index> position) {
  Location loc = reduction.op->getLoc();
  Value neutral = arith::ConstantOp::create(b, loc, reduction.neutral);
  SmallVector<Index> reduced;
  SmallVector<Value> results = evaluator.nested([&] {
    return emitLoops(
        b, loc, reduction.sizes, {neutral}, reduced,
        [&](OpBuilder &inner, SmallVector<Value> all) {
          Value x = reduction.element(evaluator, inner, position, reduced);
          return x ? SmallVector<Value>{reduction.combine(inner, all[0], x)}
                   : SmallVector<Value>();
        });
  });
  if (results.empty())
    return {};
  Type element = getType(reduction.op->getResult(0)).getElementType();
  return widen(b, loc, results[0], reduction.accumulator, element);
}

Value evaluateWindowArgMax(Evaluator &evaluator, OpBuilder &b,
                           nn::WindowArgMaxOp op, ArrayRef<Index> position) {
  Location loc = op.getLoc();
  RankedTensorType type = getType(op.getX());
  Type element = type.getElementType();
  TypedAttr lowest = getNeutral(nn::ReduceKind::max, element);
  SmallVector<Value> start{
      arith::ConstantOp::create(b, loc, lowest),
      arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(-1))};
  SmallVector<Index> window;
  auto step = [&](OpBuilder &inner, SmallVector<Value> best) {
    Value inside;
    SmallVector<Index> source;
    Index flat = evaluator.constant(0);
    for (auto dim : llvm::seq<size_t>(position.size())) {
      source.push_back(getWindowed(evaluator, inner, position[dim], window[dim],
                                   op.getStrides()[dim], op.getDilations()[dim],
                                   op.getPadsLow()[dim], op.getPadsHigh()[dim],
                                   type.getDimSize(dim), inside));
      flat =
          evaluator.add(inner, evaluator.mul(inner, flat, type.getDimSize(dim)),
                        source.back());
    }
    auto read = [&](OpBuilder &arm) {
      return evaluator.evaluate(arm, op.getX(), source);
    };
    Value x = inside ? evaluator.guard(
                           inner, loc, inside, lowest.getType(), read,
                           [&](OpBuilder &arm) -> Value {
                             return arith::ConstantOp::create(arm, loc, lowest);
                           })
                     : read(inner);
    if (!x)
      return SmallVector<Value>();
    // The first element under the window counts even if it is the lowest value.
    Value none = arith::CmpIOp::create(
        inner, loc, arith::CmpIPredicate::slt, best[1],
        arith::ConstantOp::create(inner, loc, inner.getI64IntegerAttr(0)));
    if (inside)
      none = arith::AndIOp::create(inner, loc, none, inside);
    Value larger = nn::scalar::compare(inner, loc, nn::ComparePredicate::gt, x,
                                       best[0], element);
    Value take = arith::OrIOp::create(inner, loc, none, larger);
    Value where = arith::IndexCastOp::create(inner, loc, inner.getI64Type(),
                                             evaluator.toValue(inner, flat));
    return SmallVector<Value>{
        arith::SelectOp::create(inner, loc, take, x, best[0]),
        arith::SelectOp::create(inner, loc, take, where, best[1])};
  };
  SmallVector<Value> results = evaluator.nested(
      [&] { return emitLoops(b, loc, op.getWindow(), start, window, step); });
  return results.empty() ? Value() : results[1];
}

} // namespace partita::codegen
