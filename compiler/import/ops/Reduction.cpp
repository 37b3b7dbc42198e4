//===- Reduction.cpp - Reductions -----------------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/NodeImport.h"
#include "compiler/import/graph/OpTable.h"
#include "dialects/nn/grad/Term.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

struct Reduction {
  Shape dims;
  bool keep = true;
  bool isIdentity = false; ///< noop_with_empty_axes
};

/// The axes became an input in opset 18, for ReduceSum in 13.
FailureOr<Reduction> getReduction(NodeImport &n, int64_t inputSince = 18) {
  Reduction r;
  int64_t rank = n.typeOf(n.input(0)).getRank();
  r.keep = n.intAttr("keepdims", 1) != 0;
  Shape given;
  if (n.opset < inputSince)
    given = n.intsAttr("axes").value_or(Shape());
  else if (n.input(1))
    given = PARTITA_TRY(n.constantInts(1, "axes"));
  if (given.empty()) {
    r.isIdentity = n.intAttr("noop_with_empty_axes", 0) != 0;
    given = to_vector(seq<int64_t>(0, rank));
  }
  r.dims = PARTITA_TRY(n.axes(given, rank));
  return r;
}

/// A reduction with functions of one element before and after it. Without axes
/// only these remain.
LogicalResult importReduce(NodeImport &n, nn::ReduceKind kind,
                           int64_t inputSince,
                           llvm::function_ref<Value(Value)> before,
                           llvm::function_ref<Value(Value)> after) {
  Reduction r = PARTITA_TRY(getReduction(n, inputSince));
  Value x = before ? before(n.input(0)) : n.input(0);
  if (!r.isIdentity)
    x = n.reduce(kind, x, r.dims, r.keep);
  return n.result(0, after ? after(x) : x);
}

template <nn::ReduceKind kind, int64_t inputSince>
LogicalResult importPlain(NodeImport &n) {
  Type element = n.elementOf(n.input(0));
  if (!element.isInteger(1))
    return importReduce(n, kind, inputSince, nullptr, nullptr);
  // Of booleans: true is 1, not -1.
  Type byte = IntegerType::get(n.b.getContext(), 8, IntegerType::Unsigned);
  return importReduce(
      n, kind, inputSince, [&](Value x) { return n.cast(x, byte); },
      [&](Value x) { return n.cast(x, element); });
}

LogicalResult importReduceMean(NodeImport &n) {
  Reduction r = PARTITA_TRY(getReduction(n));
  return n.result(0, r.isIdentity ? n.input(0)
                                  : n.mean(n.input(0), r.dims, r.keep));
}

LogicalResult importReduceL1(NodeImport &n) {
  return importReduce(
      n, nn::ReduceKind::sum, 18,
      [&](Value x) { return n.unary<nn::AbsOp>(x); }, nullptr);
}

LogicalResult importReduceSumSquare(NodeImport &n) {
  return importReduce(
      n, nn::ReduceKind::sum, 18, [&](Value x) { return n.mul(x, x); },
      nullptr);
}

/// f of a floating-point value; of an integer, by way of f64.
template <typename Op> Value inFloat(NodeImport &n, Value x) {
  if (!x || isa<FloatType>(n.elementOf(x)))
    return n.unary<Op>(x);
  return n.cast(n.unary<Op>(n.cast(x, n.b.getF64Type())), n.elementOf(x));
}

LogicalResult importReduceL2(NodeImport &n) {
  return importReduce(
      n, nn::ReduceKind::sum, 18, [&](Value x) { return n.mul(x, x); },
      [&](Value x) {
        Value root = inFloat<nn::SqrtOp>(n, x);
        // A norm has a slope of 0 where all is 0, as PyTorch's has.
        if (auto sqrt = root.getDefiningOp<nn::SqrtOp>())
          sqrt->setAttr(nn::grad::kZeroAtZeroAttr, n.b.getUnitAttr());
        return root;
      });
}

LogicalResult importReduceLogSum(NodeImport &n) {
  return importReduce(n, nn::ReduceKind::sum, 18, nullptr,
                      [&](Value x) { return inFloat<nn::LogOp>(n, x); });
}

/// max + log(sum(exp(x - max))): exp cannot overflow.
LogicalResult importReduceLogSumExp(NodeImport &n) {
  Reduction r = PARTITA_TRY(getReduction(n));
  Value x = n.input(0);
  if (r.isIdentity)
    return n.result(0, x);
  Type element = n.elementOf(x);
  bool isFloat = isa<FloatType>(element);
  if (!isFloat)
    x = n.cast(x, n.b.getF64Type());
  Value max =
      PARTITA_TRY(n.reduce(nn::ReduceKind::max, x, r.dims, /*keep=*/true));
  // Infinity minus infinity is no number; an infinite maximum is not
  // subtracted.
  Value isFinite = n.eq(n.sub(max, max), 0);
  max = n.select(isFinite, max, 0);
  Value exp = n.unary<nn::ExpOp>(n.sub(x, n.broadcastTo(max, n.shapeOf(x))));
  Value sum = PARTITA_TRY(n.reduce(nn::ReduceKind::sum, exp, r.dims, r.keep));
  Value result = n.add(n.unary<nn::LogOp>(sum), n.reshape(max, n.shapeOf(sum)));
  return n.result(0, n.cast(result, element));
}

const OpRow reductionOps[] = {
    {"ReduceL1", 1, 18, importReduceL1},
    {"ReduceL2", 1, 18, importReduceL2},
    {"ReduceLogSum", 1, 28, importReduceLogSum},
    {"ReduceLogSumExp", 1, 28, importReduceLogSumExp},
    {"ReduceMax", 1, 20, importPlain<nn::ReduceKind::max, 18>},
    {"ReduceMean", 1, 18, importReduceMean},
    {"ReduceMin", 1, 20, importPlain<nn::ReduceKind::min, 18>},
    {"ReduceProd", 1, 18, importPlain<nn::ReduceKind::prod, 18>},
    {"ReduceSum", 1, 13, importPlain<nn::ReduceKind::sum, 13>},
    {"ReduceSumSquare", 1, 18, importReduceSumSquare},
};

} // namespace

ArrayRef<OpRow> getReductionOps() { return reductionOps; }

} // namespace partita::import
