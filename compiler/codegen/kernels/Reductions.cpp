//===- Reductions.cpp - Ops that combine many elements into one -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/Reductions.h"

#include "compiler/codegen/kernels/Storage.h"
#include "dialects/nn/fold/ScalarEmit.h"
#include "dialects/support/Try.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace partita::codegen {

Type getAccumulator(Type element) {
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
    if (kind == nn::ReduceKind::max && ignoreNaN)
      return arith::MaxNumFOp::create(b, loc, all, x);
    return nn::scalar::combine(b, loc, kind, all, x, type);
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

/// Emits nested loops of the given sizes that carry `value`. `body` returns
/// what it becomes, or null on an error.
static Value emitLoops(OpBuilder &b, Location loc, ArrayRef<int64_t> sizes,
                       Value value, SmallVector<Index> &indices,
                       llvm::function_ref<Value(OpBuilder &, Value)> body) {
  if (indices.size() == sizes.size())
    return body(b, value);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value size = arith::ConstantIndexOp::create(b, loc, sizes[indices.size()]);
  auto loop = scf::ForOp::create(b, loc, zero, size, one, value);
  OpBuilder inner = OpBuilder::atBlockEnd(loop.getBody());
  indices.push_back({{}, loop.getInductionVar()});
  Value next =
      emitLoops(inner, loc, sizes, loop.getRegionIterArg(0), indices, body);
  indices.pop_back();
  if (!next)
    return {};
  scf::YieldOp::create(inner, loc, next);
  return loop.getResult(0);
}

Value evaluateReduction(Evaluator &evaluator, OpBuilder &b,
                        const Reduction &reduction, ArrayRef<Index> position) {
  Location loc = reduction.op->getLoc();
  Value neutral = arith::ConstantOp::create(b, loc, reduction.neutral);
  SmallVector<Index> reduced;
  Value result = PARTITA_TRY(evaluator.nested([&] {
    return emitLoops(b, loc, reduction.sizes, neutral, reduced,
                     [&](OpBuilder &inner, Value all) -> Value {
                       Value x = reduction.element(evaluator, inner, position,
                                                   reduced);
                       return x ? reduction.combine(inner, all, x) : x;
                     });
  }));
  Type element = nn::getTensorType(reduction.op->getResult(0)).getElementType();
  return nn::scalar::cast(b, loc, result, reduction.accumulator, element, true);
}

} // namespace partita::codegen
