//===- Activations.cpp - Activation functions -----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/NodeImport.h"
#include "compiler/import/graph/OpTable.h"
#include "compiler/import/math/IndexMath.h"
#include "dialects/nn/grad/Term.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

template <typename Op> LogicalResult importSimple(NodeImport &n) {
  return n.result(0, n.unary<Op>(n.input(0)));
}

/// The input of a function of several steps: narrow floats as f32, so that the
/// function rounds once, as `finish` does.
Value wideInput(NodeImport &n) {
  Value x = n.input(0);
  auto type = dyn_cast<FloatType>(n.elementOf(x));
  return type && type.getWidth() < 32 ? n.cast(x, n.b.getF32Type()) : x;
}

LogicalResult finish(NodeImport &n, Value y) {
  return n.result(0, n.cast(y, n.elementOf(n.input(0))));
}

/// x where it is positive, `negative` elsewhere.
Value whereNegative(NodeImport &n, Value x, Value negative) {
  Value isNegative = n.lt(x, 0);
  return n.select(isNegative, negative, x);
}

LogicalResult importLeakyRelu(NodeImport &n) {
  Value x = n.input(0);
  const double slope = n.floatAttr("alpha", 0.01);
  Value scaled = n.mul(x, slope);
  // The same number, without a selection. A slope of 0 makes NaN of infinity.
  if (scaled && slope > 0 && slope <= 1)
    return n.result(0, n.max(x, scaled));
  return n.result(0, whereNegative(n, x, scaled));
}

/// The slope broadcasts to x; before opset 7 one of rank 1 is by channel.
LogicalResult importPRelu(NodeImport &n) {
  Value x = n.input(0), slope = n.input(1);
  ArrayRef<int64_t> shape = n.shapeOf(x);
  if (n.opset < 7 && n.typeOf(slope).getRank() == 1 && shape.size() > 1)
    slope = n.broadcastDims(slope, {1}, shape);
  else
    slope = n.broadcastTo(slope, shape);
  return n.result(0, whereNegative(n, x, n.mul(x, slope)));
}

/// alpha * (exp(x * inner) - 1) where x is negative, x elsewhere. No positive x
/// is exponentiated: the derivative would be zero times infinity.
Value makeElu(NodeImport &n, Value x, double alpha, double inner) {
  Value low = n.min(x, 0);
  Value exp = n.unary<nn::ExpOp>(n.mul(low, inner));
  return whereNegative(n, x, n.mul(n.add(exp, -1), alpha));
}

LogicalResult importElu(NodeImport &n) {
  return finish(n, makeElu(n, wideInput(n), n.floatAttr("alpha", 1), 1));
}

LogicalResult importCelu(NodeImport &n) {
  double alpha = n.floatAttr("alpha", 1);
  return finish(n, makeElu(n, wideInput(n), alpha, 1 / alpha));
}

LogicalResult importSelu(NodeImport &n) {
  // The defaults of version 1 were rounded differently.
  double alpha =
      n.floatAttr("alpha", n.opset < 6 ? 1.6732 : 1.6732631921768188);
  double gamma =
      n.floatAttr("gamma", n.opset < 6 ? 1.0507 : 1.0507010221481323);
  return finish(n, n.mul(makeElu(n, wideInput(n), alpha, 1), gamma));
}

Value makeHardSigmoid(NodeImport &n, Value x, double alpha, double beta) {
  Value y = n.add(n.mul(x, alpha), beta);
  return n.max(n.min(y, 1), 0);
}

LogicalResult importHardSigmoid(NodeImport &n) {
  return finish(n, makeHardSigmoid(n, wideInput(n), n.floatAttr("alpha", 0.2),
                                   n.floatAttr("beta", 0.5)));
}

LogicalResult importHardSwish(NodeImport &n) {
  Value x = wideInput(n);
  return finish(n, n.mul(x, makeHardSigmoid(n, x, 1.0 / 6, 0.5)));
}

/// log(1 + exp(x)), without overflow. Its derivative at 0 is 1/2, the
/// mean of those of the ReLU on both sides; the other term has none there.
Value makeSoftplus(NodeImport &n, Value x) {
  Value positive = n.unary<nn::ReluOp>(x);
  if (auto relu = positive ? positive.getDefiningOp<nn::ReluOp>() : nullptr)
    relu->setAttr(nn::grad::kHalfAtZeroAttr, n.b.getUnitAttr());
  Value exp = n.unary<nn::ExpOp>(n.unary<nn::NegOp>(n.unary<nn::AbsOp>(x)));
  return n.add(positive, n.unary<nn::LogOp>(n.add(exp, 1)));
}

LogicalResult importSoftplus(NodeImport &n) {
  return finish(n, makeSoftplus(n, wideInput(n)));
}

LogicalResult importMish(NodeImport &n) {
  Value x = wideInput(n);
  Value tanh = n.unary<nn::TanhOp>(makeSoftplus(n, x));
  return finish(n, n.mul(x, tanh));
}

LogicalResult importSoftsign(NodeImport &n) {
  Value x = wideInput(n);
  Value denominator = n.add(n.unary<nn::AbsOp>(x), 1);
  return finish(n, n.div(x, denominator));
}

LogicalResult importThresholdedRelu(NodeImport &n) {
  Value x = n.input(0);
  Value passes = n.gt(x, n.floatAttr("alpha", 1));
  return n.result(0, n.select(passes, x, 0));
}

LogicalResult importGelu(NodeImport &n) {
  Value x = wideInput(n), inner;
  std::string approximate = n.stringAttr("approximate", "none");
  if (approximate == "tanh") {
    Value cube = n.mul(n.mul(x, x), x);
    Value sum = n.add(x, n.mul(cube, 0.044715));
    inner = n.unary<nn::TanhOp>(n.mul(sum, 0.7978845608028654));
  } else if (approximate == "none") {
    inner = n.unary<nn::ErfOp>(n.mul(x, 0.7071067811865476));
  } else {
    return n.error("the attribute approximate is '" + approximate +
                   "', neither 'none' nor 'tanh'");
  }
  return finish(n, n.mul(n.mul(x, 0.5), n.add(inner, 1)));
}

const OpRow activationOps[] = {
    {"Celu", 12, 28, importCelu},
    {"Elu", 1, 22, importElu},
    {"Gelu", 20, 20, importGelu},
    {"HardSigmoid", 1, 22, importHardSigmoid},
    {"HardSwish", 14, 22, importHardSwish},
    {"LeakyRelu", 1, 16, importLeakyRelu},
    {"Mish", 18, 22, importMish},
    {"PRelu", 1, 16, importPRelu},
    {"Relu", 1, 14, importSimple<nn::ReluOp>},
    {"Selu", 1, 22, importSelu},
    {"Sigmoid", 1, 13, importSimple<nn::LogisticOp>},
    {"Softplus", 1, 22, importSoftplus},
    {"Softsign", 1, 22, importSoftsign},
    {"Tanh", 1, 13, importSimple<nn::TanhOp>},
    {"ThresholdedRelu", 10, 22, importThresholdedRelu},
};

} // namespace

ArrayRef<OpRow> getActivationOps() { return activationOps; }

} // namespace partita::import
