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

using namespace mlir;

namespace partita::codegen {
namespace {

constexpr std::array<double, 20> kSamples = {
    -FLT_MAX, -60.0, -9.1, -4.3, -2.9,  -1.7,  -0.83, -0.21, -1e-3, 0.0,
    1e-3,     0.17,  0.62, 1.0,  0.995, 1.234, 2.71,  5.3,   11.0,  FLT_MAX};
constexpr size_t kZero = 9, kOne = 13;
static_assert(kSamples[kZero] == 0 && kSamples[kOne] == 1);
using Values = std::array<double, kSamples.size()>;

template <typename Fn> Values map(Fn fn) {
  Values values;
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = fn(i);
  return values;
}

bool isEqual(const Values &a, const Values &b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!(std::fabs(a[i] - b[i]) <= 2e-6 * std::max(1.0, std::fabs(b[i]))))
      return false;
  return true;
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
  if (isEqual(map([&](size_t i) { return alpha * kSamples[i] + beta; }), y)) {
    function.kind = plan::PostOpKind::linear;
    function.alpha = alpha;
    function.beta = beta;
    return true;
  }
  double low = y.front(), high = y.back();
  if (low <= high &&
      isEqual(map([&](size_t i) { return std::clamp(kSamples[i], low, high); }),
              y)) {
    function.kind = plan::PostOpKind::clip;
    function.alpha = low <= kSamples.front() ? -FLT_MAX : low;
    function.beta = high >= kSamples.back() ? FLT_MAX : high;
    return true;
  }
  double slope = y[5] / kSamples[5];
  if (isEqual(map([&](size_t i) {
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
    double alpha = 0;
  };
  static const Known known[] = {
      {plan::PostOpKind::relu, [](double x) { return std::max(x, 0.0); }},
      {plan::PostOpKind::tanh, [](double x) { return std::tanh(x); }},
      {plan::PostOpKind::logistic,
       [](double x) { return 1 / (1 + std::exp(-x)); }},
      {plan::PostOpKind::gelu_erf,
       [](double x) { return 0.5 * x * (1 + std::erf(x * M_SQRT1_2)); }},
      {plan::PostOpKind::gelu_tanh,
       [](double x) {
         double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
         return 0.5 * x * (1 + std::tanh(inner));
       }},
      {plan::PostOpKind::swish, [](double x) { return x / (1 + std::exp(-x)); },
       1.0},
      {plan::PostOpKind::hardswish,
       [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
      {plan::PostOpKind::abs, [](double x) { return std::fabs(x); }},
      {plan::PostOpKind::square, [](double x) { return x * x; }},
  };
  for (const Known &candidate : known)
    if (isEqual(map([&](size_t i) { return candidate.fn(kSamples[i]); }), y)) {
      function.kind = candidate.kind;
      function.alpha = candidate.alpha;
      return true;
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
  OpSet derived;
  unsigned count = 0;
  for (Operation *op : ops) {
    if (llvm::none_of(op->getOperands(),
                      [&](Value x) { return values.contains(x); }))
      continue;
    if (count++ == kMostOps)
      return std::nullopt;
    SmallVector<Values> operands;
    for (Value x : op->getOperands()) {
      auto it = values.find(x);
      if (it != values.end()) {
        operands.push_back(it->second);
        continue;
      }
      std::optional<double> splat = getSplat(x, function.used);
      if (!splat)
        return std::nullopt;
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
      return std::nullopt;
    values[function.result] = *result;
    if (passes && matchKnown(*result, function))
      return function;
  }
  return std::nullopt;
}

} // namespace partita::codegen
