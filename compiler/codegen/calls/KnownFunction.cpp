//===- KnownFunction.cpp - Functions known by their values ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/calls/KnownFunction.h"

#include "dialects/nn/NNDialect.h"
#include "dialects/nn/fold/ConstantElements.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseMap.h"

#include <array>
#include <cfloat>
#include <cmath>
#include <limits>

using namespace mlir;

namespace partita::codegen {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// The first and the last one tell bounds alone: many functions are not defined
/// there.
constexpr std::array<double, 22> kSamples = {
    -kInfinity, -FLT_MAX, -60.0, -9.1, -4.3,    -2.9,     -1.7, -0.83,
    -0.21,      -1e-3,    0.0,   1e-3, 0.17,    0.62,     1.0,  0.995,
    1.234,      2.71,     5.3,   11.0, FLT_MAX, kInfinity};
constexpr size_t kNegative = 6, kZero = 10, kOne = 14;
static_assert(kSamples[kNegative] < 0 && kSamples[kZero] == 0 &&
              kSamples[kOne] == 1);
using Values = std::array<double, kSamples.size()>;

template <typename Fn> Values map(Fn fn) {
  Values values;
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = fn(i);
  return values;
}

/// Constants of models, a sixth for instance, are rounded to f32.
constexpr double kRounding = 2e-6;

/// Whether values are the same but for rounding.
bool isEqual(const Values &a, const Values &b, double near = 0) {
  for (size_t i = 1; i + 1 < a.size(); ++i)
    if (!(std::fabs(a[i] - b[i]) <=
          std::max(near, kRounding * std::fabs(b[i]))))
      return false;
  return true;
}

/// Likewise, of functions that do not end in a difference of larger numbers: 0
/// is 0, and no number beside it, since what follows may be a logarithm. They
/// are what they are at infinity, too.
bool isExactly(const Values &a, const Values &b, double near = 0) {
  auto same = [](double x, double y) {
    return x == y || (std::isnan(x) && std::isnan(y));
  };
  return same(a.front(), b.front()) && same(a.back(), b.back()) &&
         isEqual(a, b, near);
}

/// The value of a pointwise op of f32, by the function that the op itself
/// emits, on doubles: samples overflow f32, and errors would add up. Ops of
/// halves round, each of them, which a library does once: `alone` says that
/// there is one.
std::optional<Values> evaluate(Operation *op, ArrayRef<Values> x, bool alone) {
  auto isKnown = [&](Type type) {
    type = getElementTypeOrSelf(type);
    return (type.isF32() || (alone && (type.isF16() || type.isBF16()))) &&
           type == getElementTypeOrSelf(op->getResult(0).getType());
  };
  if (!isa<nn::PointwiseOpInterface>(op) ||
      !llvm::all_of(op->getOperandTypes(), isKnown) ||
      !isKnown(op->getResult(0).getType()))
    return std::nullopt;
  Type wide = Float64Type::get(op->getContext());
  auto tensor = RankedTensorType::get({}, wide);
  Block arguments;
  IRMapping widened;
  for (Value operand : op->getOperands())
    if (!widened.contains(operand))
      widened.map(operand, arguments.addArgument(tensor, op->getLoc()));
  OwningOpRef<Operation *> copy(op->clone(widened));
  copy->getResult(0).setType(tensor);
  nn::ScalarFunction function(
      op->getLoc(), SmallVector<Type>(x.size(), wide),
      [&](OpBuilder &b, Location loc, ValueRange scalars) {
        return cast<nn::PointwiseOpInterface>(*copy).emitScalar(b, loc,
                                                                scalars);
      });
  Values values;
  for (size_t i = 0; i < values.size(); ++i) {
    SmallVector<Attribute> scalars;
    for (const Values &of : x)
      scalars.push_back(FloatAttr::get(wide, of[i]));
    auto value = dyn_cast_or_null<FloatAttr>(function.evaluate(scalars));
    if (!value)
      return std::nullopt;
    values[i] = value.getValueAsDouble();
  }
  return values;
}

/// Sets kind and parameters if `values` are those of a function with
/// parameters.
bool matchParameters(const Values &y, KnownFunction &function) {
  // linear: from two points at which nothing is rounded that the function does
  // not round. A scale must give 0 for 0, and no number beside it.
  double beta = y[kZero], alpha = y[kOne] - beta;
  // Where the terms cancel, doubles round.
  double near = 1e-12 * std::max(std::fabs(alpha), std::fabs(beta));
  if (isExactly(map([&](size_t i) { return alpha * kSamples[i] + beta; }), y,
                near)) {
    function.kind = plan::PostOpKind::linear;
    function.alpha = alpha;
    function.beta = beta;
    return true;
  }
  // A bound of infinity is none. FLT_MAX is one, which ONNX's Clip has by
  // default.
  double low = y.front(), high = y.back();
  if (low <= high && isExactly(map([&](size_t i) {
                                 return std::clamp(kSamples[i], low, high);
                               }),
                               y)) {
    function.kind = plan::PostOpKind::clip;
    function.alpha = low;
    function.beta = high;
    return true;
  }
  double slope = y[kNegative] / kSamples[kNegative];
  if (isExactly(map([&](size_t i) {
                  double x = kSamples[i];
                  return x > 0 ? x : slope * x;
                }),
                y)) {
    function.kind = plan::PostOpKind::leaky_relu;
    function.alpha = slope;
    return true;
  }
  return false;
}

bool matchKnown(const Values &y, KnownFunction &function) {
  struct Known {
    plan::PostOpKind kind;
    double (*fn)(double);
    double near = 0; ///< for values that round; 0: it is exact
    double alpha = 0;
  };
  static const Known known[] = {
      {plan::PostOpKind::relu, [](double x) { return std::max(x, 0.0); }},
      {plan::PostOpKind::tanh, [](double x) { return std::tanh(x); },
       kRounding},
      {plan::PostOpKind::logistic,
       [](double x) { return 1 / (1 + std::exp(-x)); }, kRounding},
      {plan::PostOpKind::gelu_erf,
       [](double x) { return 0.5 * x * (1 + std::erf(x * M_SQRT1_2)); },
       kRounding},
      {plan::PostOpKind::gelu_tanh,
       [](double x) {
         double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
         return 0.5 * x * (1 + std::tanh(inner));
       },
       kRounding},
      {plan::PostOpKind::swish, [](double x) { return x / (1 + std::exp(-x)); },
       kRounding, 1.0},
      {plan::PostOpKind::hardswish,
       [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }, 1e-12},
      {plan::PostOpKind::abs, [](double x) { return std::fabs(x); }},
      {plan::PostOpKind::square, [](double x) { return x * x; }},
  };
  for (const Known &candidate : known) {
    const Values x = map([&](size_t i) { return candidate.fn(kSamples[i]); });
    if (candidate.near > 0 ? isEqual(x, y, candidate.near) : isExactly(x, y)) {
      function.kind = candidate.kind;
      function.alpha = candidate.alpha;
      return true;
    }
  }
  return matchParameters(y, function);
}

} // namespace

std::optional<plan::PostOpKind> getPostOpKind(Operation *op,
                                              unsigned operands) {
  if (!isa<nn::PointwiseOpInterface>(op) || op->getNumOperands() != operands)
    return std::nullopt;
  return plan::symbolizePostOpKind(op->getName().stripDialect());
}

std::optional<KnownFunction> matchKnownFunction(ArrayRef<Value> arguments,
                                                ArrayRef<Operation *> ops) {
  constexpr unsigned kMostOps = 16;
  llvm::DenseMap<Value, Values> values;
  for (Value argument : arguments)
    values[argument] = map([](size_t i) { return kSamples[i]; });
  KnownFunction function{};
  std::optional<KnownFunction> bound; // one that another one may follow
  OpSet derived;
  unsigned count = 0;
  for (Operation *op : ops) {
    if (llvm::none_of(op->getOperands(),
                      [&](Value x) { return values.contains(x); }))
      continue;
    if (count++ == kMostOps)
      return bound;
    SmallVector<Values> operands;
    for (Value x : op->getOperands()) {
      auto it = values.find(x);
      if (it != values.end()) {
        operands.push_back(it->second);
        continue;
      }
      std::optional<double> splat = getSplat(x, function.used);
      if (!splat)
        return bound;
      operands.push_back(map([&](size_t) { return *splat; }));
    }
    derived.insert(op);
    function.used.insert(op);
    function.result = op->getResult(0);
    // Does everything pass through this value?
    auto staysInside = [&](Value x) {
      return x == function.result ||
             llvm::all_of(x.getUsers(), [&](Operation *user) {
               return derived.contains(user);
             });
    };
    bool passes = llvm::all_of(arguments, staysInside);
    for (Operation *inner : derived)
      passes &= staysInside(inner->getResult(0));
    // Some are not defined, or overflow, at some samples.
    if (count == 1 && passes)
      if (std::optional<plan::PostOpKind> kind = getPostOpKind(op, 1)) {
        function.kind = *kind;
        return function;
      }
    std::optional<Values> result = evaluate(op, operands, count == 1);
    if (!result)
      return bound;
    values[function.result] = *result;
    const bool known = passes && matchKnown(*result, function);
    if (bound && !(known && function.kind == plan::PostOpKind::clip))
      return bound;
    if (!known)
      continue;
    // The bounds of a Clip are two ops.
    if (bound || (function.kind != plan::PostOpKind::clip &&
                  function.kind != plan::PostOpKind::relu))
      return function;
    bound = function;
  }
  return bound;
}

} // namespace partita::codegen
