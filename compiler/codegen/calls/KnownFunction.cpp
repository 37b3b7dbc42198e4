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
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <vector>

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
class ScalarStep {
public:
  static bool computes(Operation *op, bool alone) {
    auto isKnown = [&](Type type) {
      type = getElementTypeOrSelf(type);
      return (type.isF32() || (alone && (type.isF16() || type.isBF16()))) &&
             type == getElementTypeOrSelf(op->getResult(0).getType());
    };
    return isa<nn::PointwiseOpInterface>(op) &&
           llvm::all_of(op->getOperandTypes(), isKnown) &&
           isKnown(op->getResult(0).getType());
  }

  explicit ScalarStep(Operation *op)
      : wide(Float64Type::get(op->getContext())), copy(widen(op)),
        function(op->getLoc(),
                 SmallVector<Type>(op->getNumOperands(), Type(wide)),
                 [&](OpBuilder &b, Location loc, ValueRange scalars) {
                   return cast<nn::PointwiseOpInterface>(*copy).emitScalar(
                       b, loc, scalars);
                 }) {}

  std::optional<double> at(ArrayRef<double> operands) {
    SmallVector<Attribute> scalars;
    for (double operand : operands)
      scalars.push_back(FloatAttr::get(wide, operand));
    auto value = dyn_cast_or_null<FloatAttr>(function.evaluate(scalars));
    return value ? std::optional(value.getValueAsDouble()) : std::nullopt;
  }

private:
  OwningOpRef<Operation *> widen(Operation *op) {
    auto tensor = RankedTensorType::get({}, wide);
    IRMapping widened;
    for (Value operand : op->getOperands())
      if (!widened.contains(operand))
        widened.map(operand, arguments.addArgument(tensor, op->getLoc()));
    OwningOpRef<Operation *> made(op->clone(widened));
    made->getResult(0).setType(tensor);
    return made;
  }

  Float64Type wide;
  Block arguments;
  OwningOpRef<Operation *> copy;
  nn::ScalarFunction function;
};

/// What the ops compute from the argument, at any point.
class Chain {
public:
  explicit Chain(ArrayRef<Value> arguments)
      : arguments(arguments.begin(), arguments.end()) {}

  /// Whether the op reads the argument, or what was computed from it.
  bool isReadBy(Operation *op) const {
    return llvm::any_of(op->getOperands(),
                        [&](Value x) { return numberOf(x) >= 0; });
  }

  /// Appends an op; its other operands are numbers. Returns false if it cannot
  /// be computed.
  bool append(Operation *op, OpSet &used) {
    Link link;
    for (Value x : op->getOperands()) {
      const int number = numberOf(x);
      std::optional<double> splat =
          number < 0 ? getSplat(x, used) : std::optional(0.0);
      if (!splat)
        return false;
      link.operands.push_back({number, *splat});
    }
    numbers[op->getResult(0)] = int(links.size()) + 1;
    link.step = ScalarStep::computes(op, links.empty())
                    ? std::make_unique<ScalarStep>(op)
                    : nullptr;
    links.push_back(std::move(link));
    return true;
  }

  /// The last value at the samples; nothing if that is not known.
  std::optional<Values> samples() {
    Values values;
    for (size_t i = 0; i < values.size(); ++i) {
      std::optional<Point> point = at(kSamples[i]);
      if (!point)
        return std::nullopt;
      values[i] = point->back();
    }
    return values;
  }

  /// Whether it is the function everywhere. Between samples an op may change
  /// what it does: where an operand is 0, or two operands are equal. So it is
  /// asked there, too.
  bool isEverywhere(const std::function<double(double)> &function,
                    double near) {
    std::map<double, Point> points;
    auto add = [&](double x) {
      std::optional<Point> point = at(x);
      if (point)
        points.emplace(x, *point);
      return point.has_value();
    };
    for (size_t i = 1; i + 1 < kSamples.size(); ++i)
      if (!add(kSamples[i]))
        return false;
    for (size_t link = 0; link < links.size(); ++link)
      for (size_t which = 0; which <= links[link].operands.size(); ++which) {
        auto gap = [&](const Point &point) {
          const SmallVector<double> x = operandsOf(link, point);
          return which < x.size() ? x[which]
                 : x.size() == 2  ? x[0] - x[1]
                                  : 1.0;
        };
        SmallVector<double> turns;
        for (auto it = points.begin(); std::next(it) != points.end(); ++it) {
          auto next = std::next(it);
          if (!(gap(it->second) * gap(next->second) < 0))
            continue;
          std::optional<double> turn = findRoot(gap, *it, *next);
          if (!turn)
            return false;
          turns.push_back(*turn);
        }
        for (double x : turns)
          for (double beside : {-1.0, 0.0, 1.0})
            if (!add(x + beside * kBeside * std::max(1.0, std::fabs(x))))
              return false;
      }
    return llvm::all_of(points, [&](const auto &point) {
      const double wanted = function(point.first);
      return std::fabs(point.second.back() - wanted) <=
             std::max(near * std::max(1.0, std::fabs(point.first)),
                      kRounding * std::fabs(wanted));
    });
  }

private:
  static constexpr double kBeside = 1e-4;

  /// The argument, then each value.
  using Point = SmallVector<double, 8>;
  struct Link {
    std::unique_ptr<ScalarStep> step; ///< null: it cannot be evaluated
    /// The number of a value, or -1 and a constant.
    SmallVector<std::pair<int, double>> operands;
  };

  int numberOf(Value x) const {
    if (llvm::is_contained(arguments, x))
      return 0;
    auto it = numbers.find(x);
    return it == numbers.end() ? -1 : it->second;
  }

  SmallVector<double> operandsOf(size_t link, const Point &point) const {
    return llvm::map_to_vector(links[link].operands, [&](const auto &operand) {
      return operand.first < 0 ? operand.second : point[size_t(operand.first)];
    });
  }

  std::optional<Point> at(double x) {
    Point point{x};
    for (size_t i = 0; i < links.size(); ++i) {
      if (!links[i].step)
        return std::nullopt;
      std::optional<double> value = links[i].step->at(operandsOf(i, point));
      if (!value)
        return std::nullopt;
      point.push_back(*value);
    }
    return point;
  }

  /// Where `gap` changes its sign, nearly: where the line through both ends
  /// does, and each third time in the middle. Nothing if the ops are not
  /// defined on the way.
  std::optional<double> findRoot(function_ref<double(const Point &)> gap,
                                 const std::pair<const double, Point> &begin,
                                 const std::pair<const double, Point> &end) {
    double low = begin.first, high = end.first, x = low;
    double atLow = gap(begin.second), atHigh = gap(end.second);
    for (int i = 0; i < 60; ++i) {
      const double byLine = low - atLow * (high - low) / (atHigh - atLow);
      x = i % 3 < 2 && byLine > low && byLine < high ? byLine
                                                     : low / 2 + high / 2;
      std::optional<Point> point = at(x);
      if (!point)
        return std::nullopt;
      const double here = gap(*point);
      if (here == 0 || high - low <= 1e-9 * std::fabs(x))
        break;
      ((here < 0) == (atLow < 0) ? low : high) = x;
      ((here < 0) == (atLow < 0) ? atLow : atHigh) = here;
    }
    return x;
  }

  SmallVector<Value> arguments;
  llvm::DenseMap<Value, int> numbers;
  std::vector<Link> links;
};

/// A function that the library knows, at any point.
struct Match {
  std::function<double(double)> at;
  double near = 0; ///< at points of 1 at most
};

/// Where nothing is rounded that the function does not round.
constexpr double kExact = 1e-12;

/// Sets kind and parameters if `values` are those of a function with
/// parameters.
std::optional<Match> matchParameters(const Values &y, KnownFunction &function) {
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
    return Match{[=](double x) { return alpha * x + beta; },
                 std::max(near, kExact)};
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
    return Match{[=](double x) { return std::clamp(x, low, high); }, kExact};
  }
  double slope = y[kNegative] / kSamples[kNegative];
  if (isExactly(map([&](size_t i) {
                  double x = kSamples[i];
                  return x > 0 ? x : slope * x;
                }),
                y)) {
    function.kind = plan::PostOpKind::leaky_relu;
    function.alpha = slope;
    return Match{[=](double x) { return x > 0 ? x : slope * x; }, kExact};
  }
  return std::nullopt;
}

std::optional<Match> matchKnown(const Values &y, KnownFunction &function) {
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
      // A kink moves where constants are rounded.
      return Match{candidate.fn, candidate.near > 0 ? kRounding : kExact};
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
  Chain chain(arguments);
  KnownFunction function{};
  std::optional<KnownFunction> bound; // one that another one may follow
  OpSet derived;
  unsigned count = 0;
  for (Operation *op : ops) {
    if (!chain.isReadBy(op))
      continue;
    if (count++ == kMostOps || !chain.append(op, function.used))
      return bound;
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
    std::optional<Values> samples = chain.samples();
    if (!samples)
      return bound;
    std::optional<Match> match =
        passes ? matchKnown(*samples, function) : std::nullopt;
    const bool known =
        match && (count == 1 || chain.isEverywhere(match->at, match->near));
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
