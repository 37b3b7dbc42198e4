//===- Compare.cpp - How near two tensors are -----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <set>

namespace partita::runtime {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// |actual - expected| of integers, without a loss before the last rounding.
double integerDifference(abi::DType dtype, const uint8_t *actual,
                         const uint8_t *expected) {
  if (dtype == abi::DType::u64) {
    uint64_t a, b;
    std::memcpy(&a, actual, 8);
    std::memcpy(&b, expected, 8);
    return double(a > b ? a - b : b - a);
  }
  int64_t a = toInteger(dtype, actual);
  int64_t b = toInteger(dtype, expected);
  return double(a > b ? uint64_t(a) - uint64_t(b) : uint64_t(b) - uint64_t(a));
}

std::string number(double value, const char *format = "%.9g") {
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string brief(double value) { return number(value, "%.3g"); }

/// The median of |x| over the elements that are finite and not 0; of two in the
/// middle the lesser.
double medianSize(const Tensor &tensor) {
  const int64_t bytes = elementBytes(tensor.dtype());
  std::vector<double> sizes;
  sizes.reserve(static_cast<size_t>(tensor.elements()));
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double size =
        std::fabs(toDouble(tensor.dtype(), tensor.data() + i * bytes));
    if (std::isfinite(size) && size > 0)
      sizes.push_back(size);
  }
  if (sizes.empty())
    return 0;
  auto middle = sizes.begin() + static_cast<int64_t>((sizes.size() - 1) / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  return *middle;
}

/// Sums over pairs of elements. A square of the largest f64 does not fit in a
/// double.
class Sums {
public:
  void add(double actual, double expected, double difference) {
    ++count;
    products += static_cast<long double>(actual) * expected;
    actuals += static_cast<long double>(actual) * actual;
    expecteds += static_cast<long double>(expected) * expected;
    differences += static_cast<long double>(difference) * difference;
  }

  void into(Comparison &result) const {
    if (count == 0)
      return;
    result.rmsDifference = static_cast<double>(std::sqrt(differences / count));
    result.rmsExpected = static_cast<double>(std::sqrt(expecteds / count));
    if (actuals > 0 && expecteds > 0)
      result.cosine = static_cast<double>(
          products / (std::sqrt(actuals) * std::sqrt(expecteds)));
    else
      result.cosine = actuals == expecteds ? 1 : 0;
  }

private:
  int64_t count = 0;
  long double products = 0, actuals = 0, expecteds = 0, differences = 0;
};

/// The distance from |x| to the next larger number of a type of floats.
double stepAt(double x, const ElementType &type) {
  const int least = 1 - type.bias; // exponent of a normal number
  const int exponent = x == 0 ? least : std::ilogb(x);
  return std::ldexp(1.0, std::max(exponent, least) - type.mantissaBits);
}

std::vector<int64_t> indexOf(int64_t element,
                             const std::vector<int64_t> &shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = element % shape[d];
    element /= shape[d];
  }
  return index;
}

/// Whether elements differ by whole steps of quantisation.
class Quantisation {
public:
  explicit Quantisation(const Tensor &expected) : expected(expected) {}

  void add(double difference) {
    // How steps are found looks at all elements: once, where any differ.
    if (quantum < 0)
      quantum = findQuantum(expected);
    const double steps = quantum > 0 ? difference / quantum : 0;
    const double whole = std::round(steps);
    if (std::isfinite(steps) && whole >= 1 &&
        std::fabs(steps - whole) <= kSlack)
      most = std::max(most, static_cast<int64_t>(whole));
    else
      isWhole = false;
  }

  void into(Comparison &result) const {
    if (!isWhole || most == 0)
      return;
    result.quantum = quantum;
    result.maxQuanta = most;
  }

private:
  static constexpr double kSlack = 0.02;
  static constexpr size_t kFewest = 6;
  static constexpr double kMostSteps = 255;

  /// The number of which all elements are multiples; 0: there is none. Whole
  /// numbers are counts and places as often.
  static double findQuantum(const Tensor &tensor) {
    const abi::DType dtype = tensor.dtype();
    if (!isFloat(dtype))
      return dtype == abi::DType::boolean || elementBytes(dtype) > 1 ? 0 : 1;
    std::set<double> values;
    const int64_t bytes = elementBytes(dtype);
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      const double x = toDouble(dtype, tensor.data() + i * bytes);
      if (std::isfinite(x))
        values.insert(x);
      if (values.size() > kMostSteps + 1)
        return 0;
    }
    if (values.size() < kFewest)
      return 0;
    const double least = *values.begin(), span = *values.rbegin() - least;
    double divisor = span;
    for (double x : values)
      divisor = commonDivisor(divisor, x - least, span / kMostSteps / 4);
    // Roundings add up while it is found: the widest distance says it best.
    const double steps = std::round(span / divisor);
    if (!(steps <= kMostSteps))
      return 0;
    const double step = span / steps;
    for (double x : values)
      if (std::fabs(std::remainder(x, step)) > kSlack * step)
        return 0;
    return std::fabs(std::remainder(step, 1)) < 1e-6 ? 0 : step;
  }

  /// Euclid's, of numbers that are rounded; what is below `rest` is 0.
  static double commonDivisor(double a, double b, double rest) {
    while (b > rest) {
      const double left = std::fabs(std::remainder(a, b));
      a = b;
      b = left;
    }
    return a;
  }

  const Tensor &expected;
  double quantum = -1; ///< not known yet
  bool isWhole = true;
  int64_t most = 0;
};

} // namespace

Tolerance Tolerances::of(abi::DType dtype) const {
  Tolerance result;
  if (dtype == abi::DType::f16 || dtype == abi::DType::bf16)
    result.rtol = result.range = 16 * stepAt(1, elementType(dtype));
  return {rtol.value_or(result.rtol), atol.value_or(result.atol),
          range.value_or(result.range)};
}

Comparison compareTensors(const Tensor &actual, const Tensor &expected) {
  return compareTensors(actual, expected, Tolerances().of(expected.dtype()));
}

Comparison compareTensors(const Tensor &actual, const Tensor &expected,
                          const Tolerance &tolerance) {
  Comparison result;
  result.tolerance = tolerance;
  result.dtype = expected.dtype();
  if (actual.dtype() != expected.dtype() ||
      actual.shape() != expected.shape()) {
    result.obstacle =
        "is " + actual.typeText() + " instead of " + expected.typeText();
    return result;
  }
  const abi::DType dtype = actual.dtype();
  const int64_t size = elementBytes(dtype);
  result.elements = actual.elements();
  if (isFloat(dtype))
    result.size = medianSize(expected);
  const bool hasSteps = isFloat(dtype) && size > 1;
  Quantisation quantisation(expected);
  Sums sums;
  double worstExcess = -kInfinity;
  int64_t worst = 0;
  for (int64_t i = 0; i < result.elements; ++i) {
    const uint8_t *a = actual.data() + i * size;
    const uint8_t *e = expected.data() + i * size;
    const double is = toDouble(dtype, a);
    const double wanted = toDouble(dtype, e);
    double difference = 0;
    if (!isFloat(dtype))
      difference = integerDifference(dtype, a, e);
    else if (std::isfinite(is) && std::isfinite(wanted))
      difference = std::fabs(is - wanted);
    else if (!(is == wanted || (std::isnan(is) && std::isnan(wanted))))
      difference = kInfinity;
    const bool exact = dtype == abi::DType::boolean || !std::isfinite(wanted);
    const double ofElement =
        exact ? 0 : tolerance.atol + tolerance.rtol * std::fabs(wanted);
    const double allowed =
        exact ? 0
              : std::max(ofElement,
                         tolerance.atol + tolerance.range * result.size);
    if (std::isfinite(is) && std::isfinite(wanted))
      sums.add(is, wanted, difference);
    if (difference > result.maxAbsolute)
      result.maxAbsolute = difference;
    if (hasSteps && difference > 0)
      result.maxSteps = std::max(
          result.maxSteps,
          difference /
              stepAt(std::max(std::isfinite(wanted) ? std::fabs(wanted) : 0.0,
                              result.size),
                     elementType(dtype)));
    if (difference > 0 && wanted != 0) {
      double relative =
          std::isfinite(wanted) ? difference / std::fabs(wanted) : kInfinity;
      if (relative > result.maxRelative)
        result.maxRelative = relative;
    }
    if (difference <= allowed) {
      result.byRange += difference > ofElement;
      continue;
    }
    ++result.mismatches;
    quantisation.add(difference);
    if (difference - allowed > worstExcess) {
      worstExcess = difference - allowed;
      worst = i;
      result.worstActual = is;
      result.worstExpected = wanted;
    }
  }
  sums.into(result);
  quantisation.into(result);
  result.equal = result.mismatches == 0;
  if (!result.equal)
    result.worstIndex = indexOf(worst, actual.shape());
  return result;
}

std::string Comparison::text() const {
  if (!obstacle.empty())
    return obstacle;
  std::string differences = "max abs diff " + brief(maxAbsolute);
  if (maxSteps > 0)
    differences += " (" + brief(maxSteps) + " steps of " +
                   std::string(dtypeName(dtype)) + ")";
  differences += ", max rel diff " + brief(maxRelative) + ", rms diff " +
                 brief(rmsDifference) + " of " + brief(rmsExpected) +
                 ", cosine " + number(cosine);
  if (byRange > 0)
    differences +=
        "; " + std::to_string(byRange) + " of " + std::to_string(elements) +
        " elements agree by the tensor's range (size " + brief(size) + ")";
  if (equal)
    return differences;
  std::string steps;
  if (maxQuanta == 1)
    steps = std::string(mismatches > 1 ? ", each" : "") +
            " by one step of quantisation (" + brief(quantum) + ")";
  else if (maxQuanta > 1)
    steps = " by up to " + std::to_string(maxQuanta) +
            " steps of quantisation (" + brief(quantum) + ")";
  return std::to_string(mismatches) + " of " + std::to_string(elements) +
         " elements differ" + steps + "; worst at " + shapeText(worstIndex) +
         ": " + number(worstActual) + " instead of " + number(worstExpected) +
         "; " + differences;
}

} // namespace partita::runtime
