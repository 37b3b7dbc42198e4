//===- Reductions.cpp - Ops that combine many elements into one -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/Reductions.h"

#include "compiler/codegen/kernels/Storage.h"
#include "dialects/nn/fold/ScalarEmit.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace partita::codegen {

/// Sums of narrow floats are kept in f32.
static Type getAccumulator(Type element) {
  if (isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32)
    return Float32Type::get(element.getContext());
  return element;
}

static void setCombiner(Reduction &reduction, nn::ReduceKind kind) {
  Type type = reduction.accumulator;
  Location loc = reduction.op->getLoc();
  bool ignoreNaN =
      reduction.op->hasAttr(kIgnoreNaNAttr) && isa<FloatType>(type);
  reduction.neutral = nn::getNeutralElement(kind, type);
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

std::optional<Reduction> describeReduction(Operation *op) {
  auto terms = dyn_cast<nn::ReductionOpInterface>(op);
  if (!terms)
    return std::nullopt;
  Reduction reduction{.op = op};
  reduction.accumulator =
      getAccumulator(getElementTypeOrSelf(op->getResult(0)));
  reduction.sizes = terms.getReducedSizes();
  setCombiner(reduction, terms.getReduceKind());
  TypedAttr neutral = reduction.neutral;
  Type wide = reduction.accumulator;
  reduction.element = [=](Evaluator &evaluator, OpBuilder &b,
                          ArrayRef<Index> position,
                          ArrayRef<Index> reduced) mutable {
    return terms.emitTerm(b, evaluator, position, reduced, neutral, wide);
  };
  return reduction;
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
  Type element = nn::getTensorType(reduction.op->getResult(0)).getElementType();
  return nn::scalar::cast(b, loc, results[0], reduction.accumulator, element,
                          true);
}

Value evaluateWindowArgMax(Evaluator &evaluator, OpBuilder &b,
                           nn::WindowArgMaxOp op, ArrayRef<Index> position) {
  Location loc = op.getLoc();
  RankedTensorType type = nn::getTensorType(op.getX());
  Type element = type.getElementType();
  TypedAttr lowest = nn::getNeutralElement(nn::ReduceKind::max, element);
  SmallVector<Value> start{
      arith::ConstantOp::create(b, loc, lowest),
      arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(-1))};
  SmallVector<Index> window;
  auto step = [&](OpBuilder &inner, SmallVector<Value> best) {
    Value inside;
    SmallVector<Index> source;
    Index flat = evaluator.constant(0);
    for (auto dim : llvm::seq<size_t>(position.size())) {
      source.push_back(evaluator.windowed(
          inner, position[dim], window[dim],
          {op.getStrides()[dim], op.getDilations()[dim], op.getPadsLow()[dim],
           op.getPadsHigh()[dim], type.getDimSize(dim)},
          inside));
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
