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

Value same(NodeImport &, Value x) { return x; }
Value square(NodeImport &n, Value x) { return n.mul(x, x); }
Value absolute(NodeImport &n, Value x) { return n.unary<nn::AbsOp>(x); }

/// Of booleans: true is 1, not -1.
Value fromBoolean(NodeImport &n, Value x) {
  Type byte = IntegerType::get(n.b.getContext(), 8, IntegerType::Unsigned);
  return n.elementOf(x).isInteger(1) ? n.cast(x, byte) : x;
}
Value toInputType(NodeImport &n, Value x) {
  return n.cast(x, n.elementOf(n.input(0)));
}

/// f of a floating-point value; of an integer, by way of f64.
template <typename Op> Value inFloat(NodeImport &n, Value x) {
  if (!x || isa<FloatType>(n.elementOf(x)))
    return n.unary<Op>(x);
  return n.cast(n.unary<Op>(n.cast(x, n.b.getF64Type())), n.elementOf(x));
}

Value normOf(NodeImport &n, Value x) {
  Value root = inFloat<nn::SqrtOp>(n, x);
  // A norm has a slope of 0 where all is 0, as PyTorch's has.
  if (auto sqrt = root.getDefiningOp<nn::SqrtOp>())
    sqrt->setAttr(nn::grad::kZeroAtZeroAttr, n.b.getUnitAttr());
  return root;
}

/// A reduction with functions of one element before and after it. Without axes
/// only these remain.
template <nn::ReduceKind kind, auto before, auto after = same,
          int64_t inputSince = 18>
LogicalResult importReduce(NodeImport &n) {
  Reduction r = PARTITA_TRY(getReduction(n, inputSince));
  Value x = before(n, n.input(0));
  if (!r.isIdentity)
    x = n.reduce(kind, x, r.dims, r.keep);
  return n.result(0, after(n, x));
}

LogicalResult importReduceMean(NodeImport &n) {
  Reduction r = PARTITA_TRY(getReduction(n));
  return n.result(0, r.isIdentity ? n.input(0)
                                  : n.mean(n.input(0), r.dims, r.keep));
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
    {"ReduceL1", 1, 18, importReduce<nn::ReduceKind::sum, absolute>},
    {"ReduceL2", 1, 18, importReduce<nn::ReduceKind::sum, square, normOf>},
    {"ReduceLogSum", 1, 28,
     importReduce<nn::ReduceKind::sum, same, inFloat<nn::LogOp>>},
    {"ReduceLogSumExp", 1, 28, importReduceLogSumExp},
    {"ReduceMax", 1, 20,
     importReduce<nn::ReduceKind::max, fromBoolean, toInputType>},
    {"ReduceMean", 1, 18, importReduceMean},
    {"ReduceMin", 1, 20,
     importReduce<nn::ReduceKind::min, fromBoolean, toInputType>},
    {"ReduceProd", 1, 18,
     importReduce<nn::ReduceKind::prod, fromBoolean, toInputType>},
    {"ReduceSum", 1, 13,
     importReduce<nn::ReduceKind::sum, fromBoolean, toInputType, 13>},
    {"ReduceSumSquare", 1, 18, importReduce<nn::ReduceKind::sum, square>},
};

} // namespace

ArrayRef<OpRow> getReductionOps() { return reductionOps; }

} // namespace partita::import
