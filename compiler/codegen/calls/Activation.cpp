//===- Activation.cpp - Activation functions made of several ops ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/calls/Activation.h"

#include "dialects/nn/NNDialect.h"
#include "dialects/nn/fold/ConstantElements.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

#include <array>
#include <cmath>
#include <limits>

using namespace mlir;

namespace partita::codegen {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Whether a coefficient is `wanted`. Constants of models, a sixth for
/// instance, are rounded to f32.
bool isNear(double value, double wanted) {
  return std::fabs(value - wanted) <= 2e-6 * std::fabs(wanted);
}

/// The coefficients of 1, x, x^2 and x^3.
using Polynomial = std::array<double, 4>;
constexpr Polynomial kX = {0, 1, 0, 0};

bool isZero(const Polynomial &p) { return p == Polynomial{}; }
/// Whether it is c + s x.
bool isLinear(const Polynomial &p) { return p[2] == 0 && p[3] == 0; }

/// Nothing beyond x^3.
std::optional<Polynomial> multiply(const Polynomial &a, const Polynomial &b) {
  Polynomial product = {};
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < b.size(); ++j) {
      if (a[i] == 0 || b[j] == 0)
        continue;
      if (i + j >= product.size())
        return std::nullopt;
      product[i + j] += a[i] * b[j];
    }
  return product;
}

enum class FunctionKind { erf, exp, tanh, logistic, clip, leaky_relu };

/// A function of a polynomial of x.
struct Function {
  FunctionKind kind;
  Polynomial of = kX;
  double low = -kInfinity, high = kInfinity; ///< of clip
  double slope = 0;                          ///< of leaky_relu

  bool operator==(const Function &) const = default;
};

/// plain + times * function.
struct Term {
  Polynomial plain = {};
  Polynomial times = {};
  std::optional<Function> function;

  static Term number(double value) { return {{value, 0, 0, 0}, {}, {}}; }
  static Term of(const Function &function) {
    return {{}, {1, 0, 0, 0}, function};
  }
  bool isNumber() const {
    return !function && plain[1] == 0 && isLinear(plain);
  }
  /// Whether it is the function alone.
  bool isFunction(FunctionKind kind) const {
    return function && function->kind == kind && isZero(plain) &&
           times == Polynomial{1, 0, 0, 0};
  }
};

std::optional<Term> add(const Term &a, const Term &b, double scale = 1) {
  if (a.function && b.function && !(*a.function == *b.function))
    return std::nullopt;
  Term sum = a;
  sum.function = a.function ? a.function : b.function;
  for (size_t i = 0; i < sum.plain.size(); ++i) {
    sum.plain[i] += scale * b.plain[i];
    sum.times[i] += scale * b.times[i];
  }
  return sum;
}

std::optional<Term> multiply(const Term &a, const Term &b) {
  if (a.function && b.function)
    return std::nullopt;
  if (b.function)
    return multiply(b, a);
  std::optional<Polynomial> plain = multiply(a.plain, b.plain);
  std::optional<Polynomial> times = multiply(a.times, b.plain);
  if (!plain || !times)
    return std::nullopt;
  return Term{*plain, *times, a.function};
}

std::optional<Term> apply(FunctionKind kind, const Term &x) {
  if (x.function)
    return std::nullopt;
  return Term::of({kind, x.plain});
}

std::optional<Term> invert(const Term &x) {
  if (x.isNumber())
    return Term::number(1 / x.plain[0]);
  // 1 / (1 + exp(-u))
  if (x.function && x.function->kind == FunctionKind::exp &&
      x.plain == Polynomial{1, 0, 0, 0} && x.times == Polynomial{1, 0, 0, 0}) {
    Function logistic{FunctionKind::logistic, x.function->of};
    for (double &coefficient : logistic.of)
      coefficient = coefficient == 0 ? 0 : -coefficient;
    return Term::of(logistic);
  }
  return std::nullopt;
}

std::optional<Term> divide(const Term &a, const Term &b) {
  // A quotient, where the product with the inverse would round twice.
  if (b.isNumber()) {
    Term quotient = a;
    for (Polynomial *part : {&quotient.plain, &quotient.times})
      for (double &coefficient : *part)
        coefficient /= b.plain[0];
    return quotient;
  }
  std::optional<Term> inverse = invert(b);
  return inverse ? multiply(a, *inverse) : std::nullopt;
}

/// min(max(x, low), high)
std::optional<Term> clip(const Term &x, double low, double high) {
  Function bounded{FunctionKind::clip, x.plain, low, high};
  if (x.isFunction(FunctionKind::clip)) {
    bounded.of = x.function->of;
    bounded.low = std::max(low, x.function->low);
    bounded.high = std::min(high, x.function->high);
  } else if (x.function || !isLinear(x.plain)) {
    return std::nullopt;
  }
  if (!(bounded.low <= bounded.high))
    return std::nullopt;
  return Term::of(bounded);
}

std::optional<Term> largerOf(const Term &x, const Term &y) {
  if (x.isNumber())
    return clip(y, x.plain[0], kInfinity);
  if (y.isNumber())
    return clip(x, y.plain[0], kInfinity);
  // max(x, s x)
  if (x.function || y.function)
    return std::nullopt;
  for (auto [a, b] : {std::pair(&x, &y), std::pair(&y, &x)})
    if (a->plain == kX && b->plain == Polynomial{0, b->plain[1], 0, 0} &&
        b->plain[1] > 0 && b->plain[1] <= 1)
      return Term::of(
          {FunctionKind::leaky_relu, kX, -kInfinity, kInfinity, b->plain[1]});
  return std::nullopt;
}

std::optional<Term> smallerOf(const Term &x, const Term &y) {
  if (x.isNumber())
    return clip(y, -kInfinity, x.plain[0]);
  return y.isNumber() ? clip(x, -kInfinity, y.plain[0]) : std::nullopt;
}

std::optional<Term> power(const Term &x, const Term &exponent) {
  if (!exponent.isNumber())
    return std::nullopt;
  if (exponent.plain[0] == 2)
    return multiply(x, x);
  if (exponent.plain[0] != 3)
    return std::nullopt;
  std::optional<Term> square = multiply(x, x);
  return square ? multiply(*square, x) : std::nullopt;
}

std::optional<Term> compute(Operation *op, ArrayRef<Term> x) {
  using Result = std::optional<Term>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<nn::AddOp>([&](auto) { return add(x[0], x[1]); })
      .Case<nn::SubOp>([&](auto) { return add(x[0], x[1], -1); })
      .Case<nn::MulOp>([&](auto) { return multiply(x[0], x[1]); })
      .Case<nn::DivOp>([&](auto) { return divide(x[0], x[1]); })
      .Case<nn::PowOp>([&](auto) { return power(x[0], x[1]); })
      .Case<nn::MaxOp>([&](auto) { return largerOf(x[0], x[1]); })
      .Case<nn::MinOp>([&](auto) { return smallerOf(x[0], x[1]); })
      .Case<nn::ReluOp>([&](auto) { return clip(x[0], 0, kInfinity); })
      .Case<nn::NegOp>([&](auto) { return add(Term(), x[0], -1); })
      .Case<nn::ReciprocalOp>([&](auto) { return invert(x[0]); })
      .Case<nn::ErfOp>([&](auto) { return apply(FunctionKind::erf, x[0]); })
      .Case<nn::ExpOp>([&](auto) { return apply(FunctionKind::exp, x[0]); })
      .Case<nn::TanhOp>([&](auto) { return apply(FunctionKind::tanh, x[0]); })
      .Case<nn::LogisticOp>(
          [&](auto) { return apply(FunctionKind::logistic, x[0]); })
      .Default([](auto) { return Result(); });
}

/// Sets kind and parameters if the term is a post-op of library calls.
bool matchPostOp(const Term &term, Activation &activation) {
  auto set = [&](plan::PostOpKind kind, double alpha = 0, double beta = 0) {
    activation.kind = kind;
    activation.alpha = alpha;
    activation.beta = beta;
    return true;
  };
  if (!term.function) {
    if (term.plain == Polynomial{0, 0, 1, 0})
      return set(plan::PostOpKind::square);
    return isLinear(term.plain) &&
           set(plan::PostOpKind::linear, term.plain[1], term.plain[0]);
  }
  const Function &f = *term.function;
  if (term.isFunction(f.kind)) {
    if (f.of != kX)
      return false;
    switch (f.kind) {
    case FunctionKind::tanh:
      return set(plan::PostOpKind::tanh);
    case FunctionKind::logistic:
      return set(plan::PostOpKind::logistic);
    case FunctionKind::leaky_relu:
      return set(plan::PostOpKind::leaky_relu, f.slope);
    case FunctionKind::clip:
      return f.low == 0 && f.high == kInfinity
                 ? set(plan::PostOpKind::relu)
                 : set(plan::PostOpKind::clip, f.low, f.high);
    case FunctionKind::erf:
    case FunctionKind::exp:
      return false;
    }
  }
  // x, times a function of x.
  const double scale = term.times[1];
  if (term.times != Polynomial{0, scale, 0, 0} ||
      term.plain != Polynomial{0, term.plain[1], 0, 0})
    return false;
  if (isZero(term.plain)) {
    if (f.kind == FunctionKind::logistic && f.of == kX && isNear(scale, 1))
      return set(plan::PostOpKind::swish, 1);
    return f.kind == FunctionKind::clip && isNear(scale * f.of[1], 1.0 / 6) &&
           isNear(scale * f.of[0], 0.5) && f.low == 0 &&
           isNear(scale * f.high, 1) && set(plan::PostOpKind::hardswish);
  }
  if (!isNear(scale, 0.5) || !isNear(term.plain[1], 0.5))
    return false;
  if (f.kind == FunctionKind::erf)
    return isNear(f.of[1], M_SQRT1_2) && f.of == Polynomial{0, f.of[1], 0, 0} &&
           set(plan::PostOpKind::gelu_erf);
  const double inner = std::sqrt(2 / M_PI);
  return f.kind == FunctionKind::tanh && isNear(f.of[1], inner) &&
         isNear(f.of[3], inner * 0.044715) && f.of[0] == 0 && f.of[2] == 0 &&
         set(plan::PostOpKind::gelu_tanh);
}

/// The number that all elements are equal to, if that is known. Looks through
/// broadcasts and the like, and adds what it looks through to `used`.
std::optional<double> getSplat(Value value, OpSet &used) {
  Operation *op = value.getDefiningOp();
  std::optional<double> splat = isa_and_nonnull<nn::ViewOpInterface>(op)
                                    ? getSplat(op->getOperand(0), used)
                                    : nn::getFloatSplat(value);
  if (splat)
    used.insert(op);
  return splat;
}

/// Whether the ops round nothing that a library does not. It computes in f32,
/// and rounds halves once: so an op of halves must be `alone`.
bool roundsAlike(Operation *op, bool alone) {
  const Type result = getElementTypeOrSelf(op->getResult(0).getType());
  return isa<nn::PointwiseOpInterface>(op) &&
         (result.isF32() || (alone && (result.isF16() || result.isBF16()))) &&
         llvm::all_of(op->getOperandTypes(), [&](Type type) {
           return getElementTypeOrSelf(type) == result;
         });
}

} // namespace

std::optional<plan::PostOpKind> getPostOpKind(Operation *op,
                                              unsigned operands) {
  if (!isa<nn::PointwiseOpInterface>(op) || op->getNumOperands() != operands)
    return std::nullopt;
  return plan::symbolizePostOpKind(op->getName().stripDialect());
}

std::optional<Activation> matchActivation(ArrayRef<Value> arguments,
                                          ArrayRef<Operation *> ops) {
  constexpr unsigned kMostOps = 16;
  llvm::DenseMap<Value, Term> terms;
  for (Value argument : arguments)
    terms[argument] = {kX, {}, {}};
  Activation activation{};
  std::optional<Activation> bound; // one that another one may follow
  OpSet derived;
  unsigned count = 0;
  for (Operation *op : ops) {
    if (llvm::none_of(op->getOperands(),
                      [&](Value x) { return terms.contains(x); }))
      continue;
    if (count++ == kMostOps)
      return bound;
    SmallVector<Term> operands;
    for (Value x : op->getOperands()) {
      if (auto it = terms.find(x); it != terms.end())
        operands.push_back(it->second);
      else if (std::optional<double> splat = getSplat(x, activation.used))
        operands.push_back(Term::number(*splat));
      else
        return bound;
    }
    derived.insert(op);
    activation.used.insert(op);
    activation.result = op->getResult(0);
    // Does everything pass through this value?
    auto staysInside = [&](Value x) {
      return x == activation.result ||
             llvm::all_of(x.getUsers(), [&](Operation *user) {
               return derived.contains(user);
             });
    };
    bool passes = llvm::all_of(arguments, staysInside);
    for (Operation *inner : derived)
      passes &= staysInside(inner->getResult(0));
    if (count == 1 && passes)
      if (std::optional<plan::PostOpKind> kind = getPostOpKind(op, 1)) {
        activation.kind = *kind;
        return activation;
      }
    std::optional<Term> term;
    if (roundsAlike(op, count == 1))
      term = compute(op, operands);
    if (!term)
      return bound;
    terms[op->getResult(0)] = *term;
    const bool known = passes && matchPostOp(*term, activation);
    if (bound && !(known && activation.kind == plan::PostOpKind::clip))
      return bound;
    if (!known)
      continue;
    // The bounds of a Clip are two ops.
    if (bound || (activation.kind != plan::PostOpKind::clip &&
                  activation.kind != plan::PostOpKind::relu))
      return activation;
    bound = activation;
  }
  return bound;
}

} // namespace partita::codegen
