//===- Normalization.cpp - Normalizations and softmax ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/NodeImport.h"
#include "compiler/import/graph/OpTable.h"
#include "compiler/import/math/IndexMath.h"
#include "dialects/nn/CheckAttr.h"

#include <cmath>

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

/// 1 / sqrt(variance + epsilon).
Value makeInverseDeviation(NodeImport &n, Value variance, double epsilon) {
  return n.unary<nn::RsqrtOp>(n.add(variance, epsilon));
}

/// Mean over `dims`, which stay, and the mean of the squared distance from it.
struct Moments {
  Value mean, centered, variance;
};
Moments makeMoments(NodeImport &n, Value x, ArrayRef<int64_t> dims) {
  Moments m;
  m.mean = n.mean(x, dims, /*keep=*/true);
  m.centered = m.mean ? n.sub(x, n.broadcastTo(m.mean, n.shapeOf(x))) : Value();
  m.variance = n.mean(n.mul(m.centered, m.centered), dims,
                      /*keep=*/true);
  return m;
}

/// x less its mean over `dims`, divided by its deviation: computed in the type
/// `wide`, of which the mean and the factor 1 / deviation are.
struct Normal {
  Value value, mean, inverse;
};
Normal normalize(NodeImport &n, Value x, ArrayRef<int64_t> dims, Type wide) {
  if (!x)
    return {};
  Moments m = makeMoments(n, n.cast(x, wide), dims);
  Value inverse =
      makeInverseDeviation(n, m.variance, n.floatAttr("epsilon", 1e-5));
  Value value = n.mul(m.centered, n.broadcastTo(inverse, n.shapeOf(x)));
  return {n.cast(value, n.elementOf(x)), m.mean, inverse};
}

/// x * scale + shift with the weights' part in one factor and one summand,
/// which a convolution before it can take up.
Value makeAffine(NodeImport &n, Value x, ArrayRef<int64_t> dims, Value scale,
                 Value bias, Value mean, Value variance, double epsilon) {
  Value factor = n.mul(scale, makeInverseDeviation(n, variance, epsilon));
  Value summand = n.sub(bias, n.mul(mean, factor));
  if (!factor || !summand)
    return {};
  factor = n.cast(factor, n.elementOf(x));
  summand = n.cast(summand, n.elementOf(x));
  ArrayRef<int64_t> shape = n.shapeOf(x);
  return n.add(n.mul(x, n.broadcastDims(factor, dims, shape)),
               n.broadcastDims(summand, dims, shape));
}

/// What a step learns of a running statistic, of which each micro-batch has
/// another: r becomes r (1 - k)^M + sum over m of k (1 - k)^(M - 1 - m) s(m).
/// That is one r (1 - k) + k s after the other, in a form that needs no order.
LogicalResult learnStatistic(NodeImport &n, unsigned input, Value current,
                             double momentum) {
  auto running = n.input(input).getDefiningOp<nn::ParameterOp>();
  if (!running)
    return n.error("the model computes the running statistics that it should "
                   "learn; --eval-mode " +
                   nn::getNodeName(n.loc) + " leaves them as they are");
  for (const ValueSource::Statistic &other : n.source.statistics)
    if (other.weight == running.getWeightAttr())
      return n.error("another node has the running statistic '" +
                     running.getWeight() +
                     "', too: which of the two it is of is not known; "
                     "--eval-mode names nodes that learn none");
  const int64_t count = n.source.training.microBatches;
  Value weighted;
  if (count == 1) {
    weighted = n.mul(current, 1 - momentum);
  } else {
    SmallVector<double> weights;
    for (int64_t m = 0; m < count; ++m)
      weights.push_back((1 - momentum) *
                        std::pow(momentum, static_cast<double>(count - 1 - m)));
    Value samples = PARTITA_TRY(n.source.getSampleNumbers(n));
    // Of the micro-batch: its first sample's number tells which it is.
    Value first = n.part(samples, 0, 0, 1);
    Value number =
        n.binary<nn::RemOp>(n.div(first, n.shapeOf(samples)[0]), count);
    Value weight =
        n.gather(n.numbers(weights, n.elementOf(current)), number, 0);
    weighted = n.mul(current, n.broadcastTo(weight, n.shapeOf(current)));
  }
  if (!weighted)
    return failure();
  Value sum = nn::SumMicroBatchesOp::create(n.b, n.loc, weighted.getType(),
                                            weighted, Value(), IntegerAttr());
  Value old = running.getResult();
  const double kept = std::pow(momentum, static_cast<double>(count));
  Value next = PARTITA_TRY(n.add(n.mul(old, kept), sum));
  n.source.statistics.push_back({running.getWeightAttr(), next});
  return success();
}

/// Whether the samples decide a value.
bool dependsOnInputs(Value value) {
  SmallVector<Value> waiting = {value};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!waiting.empty()) {
    Operation *op = waiting.pop_back_val().getDefiningOp();
    if (!op)
      return true;
    if (seen.insert(op).second)
      llvm::append_range(waiting, op->getOperands());
  }
  return false;
}

LogicalResult importBatchNormalization(NodeImport &n) {
  Value x = n.input(0), scale = n.input(1), bias = n.input(2),
        mean = n.input(3), variance = n.input(4);
  ArrayRef<int64_t> shape = n.shapeOf(x);
  if (shape.size() < 2)
    return n.error("X must have rank 2 at least");
  double epsilon = n.floatAttr("epsilon", 1e-5);
  const auto [mode, isKept] = n.source.getMode(nn::getNodeName(n.loc));
  bool training = n.opset >= 14 ? n.intAttr("training_mode", 0) != 0
                  : n.opset < 7 ? n.intAttr("is_test", 0) == 0
                                : n.wantsOutput(1);
  // One whose statistics the model computes of the samples has no running ones:
  // PyTorch's `track_running_stats=False`.
  const bool measures = mode != TrainingMode::asWritten &&
                        dependsOnInputs(mean) && dependsOnInputs(variance);
  if (mode != TrainingMode::asWritten && !measures)
    training = mode == TrainingMode::learn;
  else if (training && n.opset < 14)
    return n.error("it is in training mode, which is supported from opset 14");

  // Before opset 9 the statistics could be by channel and position.
  Shape dims{1};
  if (n.opset < 9 && n.intAttr("spatial", 1) == 0)
    dims = to_vector(seq<int64_t>(1, shape.size()));
  Shape expected;
  for (int64_t dim : dims)
    expected.push_back(shape[dim]);
  for (unsigned i = 1; i < 5; ++i)
    if (n.shapeOf(n.input(i)) != ArrayRef(expected))
      return n.error("input " + Twine(i) +
                     " does not have one element a channel");
  // They are no parameters: they are measured, not trained.
  for (unsigned i : {3, 4})
    if (auto parameter = n.input(i).getDefiningOp<nn::ParameterOp>())
      parameter->setAttr(nn::kStatisticAttr, n.b.getUnitAttr());
  if (n.source.training.mode != TrainingMode::asWritten && !isKept)
    for (unsigned i : {3, 4})
      if (auto parameter = n.input(i).getDefiningOp<nn::ParameterOp>())
        n.source.makeState(parameter);
  // Statistics may be of another precision than X.
  Type statistics = n.elementOf(mean);
  scale = n.cast(scale, statistics);
  bias = n.cast(bias, statistics);
  Value centered;
  if (training) {
    Shape others;
    int64_t measured = 1;
    for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i)
      if (!is_contained(dims, i)) {
        others.push_back(i);
        measured *= shape[i];
      }
    Moments moments = makeMoments(n, n.cast(x, statistics), others);
    double momentum = n.floatAttr("momentum", 0.9);
    auto mix = [&](Value running, Value current) {
      return n.add(n.mul(running, momentum), n.mul(current, 1 - momentum));
    };
    Value oldMean = mean, oldVariance = variance;
    mean = n.reshape(moments.mean, expected);
    variance = n.reshape(moments.variance, expected);
    PARTITA_TRY(n.result(1, mix(oldMean, mean)));
    PARTITA_TRY(n.result(2, mix(oldVariance, variance)));
    if (mode == TrainingMode::learn && !measures) {
      if (measured < 2)
        return n.error("a micro-batch has one element a channel, which has no "
                       "variance: take micro-batches of several samples");
      // The variance of all that the elements are drawn from, as PyTorch has
      // it.
      const double unbiased =
          static_cast<double>(measured) / static_cast<double>(measured - 1);
      PARTITA_TRY(learnStatistic(n, 3, mean, momentum));
      PARTITA_TRY(learnStatistic(n, 4, n.mul(variance, unbiased), momentum));
    }
    centered = moments.centered;
  } else {
    PARTITA_TRY(n.result(1, mean));
    PARTITA_TRY(n.result(2, variance));
  }
  if (measures && !training)
    centered = n.sub(n.cast(x, statistics), n.broadcastDims(mean, dims, shape));
  // The other form subtracts large numbers from each other where the mean is
  // large beside the deviation, and so does its derivative.
  if (centered) {
    auto spread = [&](Value x) { return n.broadcastDims(x, dims, shape); };
    Value factor = n.mul(scale, makeInverseDeviation(n, variance, epsilon));
    Value y = n.add(n.mul(centered, spread(factor)), spread(bias));
    return n.result(0, n.cast(y, n.elementOf(x)));
  }
  return n.result(0,
                  makeAffine(n, x, dims, scale, bias, mean, variance, epsilon));
}

LogicalResult importInstanceNormalization(NodeImport &n) {
  Value x = n.input(0);
  ArrayRef<int64_t> shape = n.shapeOf(x);
  if (shape.size() < 3)
    return n.error("the input must have rank 3 at least");
  Normal normal =
      normalize(n, x, to_vector(seq<int64_t>(2, shape.size())), n.elementOf(x));
  Value scaled = n.mul(normal.value, n.broadcastDims(n.input(1), {1}, shape));
  return n.result(0, n.add(scaled, n.broadcastDims(n.input(2), {1}, shape)));
}

/// Not as ONNX's function of other ops: its variance is the difference of two
/// means, of which nothing is left where the mean is large.
LogicalResult importMeanVarianceNormalization(NodeImport &n) {
  Value x = n.input(0);
  const int64_t rank = n.typeOf(x).getRank();
  SmallVector<int64_t> dims;
  for (int64_t axis : n.intsAttr("axes").value_or(Shape{0, 2, 3}))
    dims.push_back(PARTITA_TRY(n.axis(axis, rank)));
  llvm::sort(dims);
  if (std::adjacent_find(dims.begin(), dims.end()) != dims.end())
    return n.error("the attribute axes names a dimension twice");
  Moments m = makeMoments(n, x, dims);
  Value deviation = n.unary<nn::SqrtOp>(m.variance);
  Value divisor = PARTITA_TRY(n.add(deviation, 1e-9));
  return n.result(0, n.div(m.centered, n.broadcastTo(divisor, n.shapeOf(x))));
}

LogicalResult importLayerNormalization(NodeImport &n) {
  Value x = n.input(0);
  int64_t rank = n.typeOf(x).getRank();
  int64_t axis = PARTITA_TRY(n.axisAttr(-1, rank));
  // The moments are computed in a type of their own, f32 by default.
  Type wide = n.typeAttr("stash_type", n.b.getF32Type());
  if (!isa_and_present<FloatType>(wide))
    return n.error("the attribute stash_type names no floating-point type");
  Normal normal = normalize(n, x, to_vector(seq(axis, rank)), wide);
  ArrayRef<int64_t> shape = n.shapeOf(x);
  Value result = n.mul(normal.value, n.broadcastTo(n.input(1), shape));
  if (Value bias = n.input(2))
    result = n.add(result, n.broadcastTo(bias, shape));
  PARTITA_TRY(n.result(0, result));
  PARTITA_TRY(n.result(1, normal.mean));
  return n.result(2, normal.inverse);
}

/// Not as ONNX's function of other ops either, for the same reason. Before
/// opset 21 there was a scale and a bias for each group, not for each channel.
LogicalResult importGroupNormalization(NodeImport &n) {
  Value x = n.input(0);
  ArrayRef<int64_t> shape = n.shapeOf(x);
  const int64_t groups = n.intAttr("num_groups", 0);
  if (shape.size() < 2)
    return n.error("the input must have a dimension of channels");
  if (groups < 1 || shape[1] % groups)
    return n.error("the attribute num_groups must divide the " +
                   Twine(shape[1]) + " channels, and is " + Twine(groups));
  Type wide = n.opset < 21 ? n.elementOf(x)
                           : n.typeAttr("stash_type", n.b.getF32Type());
  if (!isa_and_present<FloatType>(wide))
    return n.error("the attribute stash_type names no floating-point type");
  Shape grouped = {shape[0], groups, shape[1] / groups};
  llvm::append_range(grouped, shape.drop_front(2));
  Value normal = normalize(n, n.reshape(x, grouped),
                           to_vector(seq<int64_t>(2, grouped.size())), wide)
                     .value;
  const bool byGroup = n.opset < 21;
  if (!byGroup)
    normal = n.reshape(normal, shape);
  ArrayRef<int64_t> spread = byGroup ? ArrayRef<int64_t>(grouped) : shape;
  Value result = n.mul(normal, n.broadcastDims(n.input(1), {1}, spread));
  result = n.add(result, n.broadcastDims(n.input(2), {1}, spread));
  return n.result(0, byGroup ? n.reshape(result, shape) : result);
}

/// Before opset 13 the tensor was seen as a matrix whose rows begin at the
/// axis.
template <bool log> LogicalResult importSoftmax(NodeImport &n) {
  Value x = n.input(0);
  ArrayRef<int64_t> shape = n.shapeOf(x);
  int64_t rank = shape.size();
  int64_t axis = PARTITA_TRY(n.axisAttr(n.opset < 13 ? 1 : -1, rank));
  auto softmax = [&](Value value, int64_t dim) {
    return n.make<nn::SoftmaxOp>(value.getType(), value, dim, log);
  };
  if (n.opset >= 13 || axis == rank - 1)
    return n.result(0, softmax(x, axis));
  Value matrix = n.reshape(
      x, {product(shape.take_front(axis)), product(shape.drop_front(axis))});
  return n.result(0, n.reshape(softmax(matrix, 1), shape));
}

const OpRow normalizationOps[] = {
    {"BatchNormalization", 1, 15, importBatchNormalization},
    {"InstanceNormalization", 1, 22, importInstanceNormalization},
    {"GroupNormalization", 18, 21, importGroupNormalization},
    {"LayerNormalization", 17, 17, importLayerNormalization},
    {"LogSoftmax", 1, 13, importSoftmax<true>},
    {"MeanVarianceNormalization", 9, 13, importMeanVarianceNormalization},
    {"Softmax", 1, 13, importSoftmax<false>},
};

} // namespace

ArrayRef<OpRow> getNormalizationOps() { return normalizationOps; }

} // namespace partita::import
