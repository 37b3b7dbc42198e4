//===- GateFunctionTest.cpp - Vectorised functions of gates ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/simd/GateRows.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

namespace partita::runtime {
namespace {

struct Case {
  const char *name;
  const char *level; ///< that the processor must have; null: none
  GateRows rows;
  double (*expected)(double);
};

void PrintTo(const Case &each, std::ostream *os) { *os << each.name; }

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double tangent(double x) { return std::tanh(x); }

bool runsHere(const Case &each) {
  if (!each.level)
    return true;
  return std::string(each.level) == "v3" ? __builtin_cpu_supports("x86-64-v3")
                                         : __builtin_cpu_supports("x86-64-v4");
}

class GateRowsTest : public testing::TestWithParam<Case> {};

TEST_P(GateRowsTest, IsWithinThreeUnitsInTheLastPlace) {
  if (!runsHere(GetParam()))
    GTEST_SKIP() << "this processor is not an x86-64-" << GetParam().level;
  std::vector<float> x, y;
  for (float magnitude = 1e-30f; magnitude < 1e30f; magnitude *= 1.003f)
    x.insert(x.end(), {magnitude, -magnitude});
  x.insert(x.end(), {0.0f, -0.0f, 0.625f, 0.6249999f});
  y = x;
  GetParam().rows(y.data(), static_cast<int64_t>(y.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    auto expected = static_cast<float>(GetParam().expected(x[i]));
    // Where exp would be denormal it is 0.
    if (std::fabs(expected) < 1e-36f && GetParam().expected == logistic)
      expected = std::fabs(y[i]) < 1e-36f ? y[i] : expected;
    float unit =
        std::nextafter(std::fabs(expected), 2.0f) - std::fabs(expected);
    EXPECT_LE(std::fabs(y[i] - expected), 3 * unit) << "of " << x[i];
  }
}

TEST_P(GateRowsTest, TakesAnyCountAndWhatIsNoNumber) {
  if (!runsHere(GetParam()))
    GTEST_SKIP() << "this processor is not an x86-64-" << GetParam().level;
  for (int64_t count = 0; count < 40; ++count) {
    std::vector<float> y(static_cast<size_t>(count) + 1, 0.25f);
    GetParam().rows(y.data(), count);
    EXPECT_EQ(y.back(), 0.25f); // nothing behind the row is touched
    for (int64_t i = 0; i < count; ++i)
      EXPECT_NEAR(y[static_cast<size_t>(i)], GetParam().expected(0.25), 1e-6);
  }
  const float infinity = std::numeric_limits<float>::infinity();
  float y[] = {infinity, -infinity, std::nanf("")};
  GetParam().rows(y, 3);
  EXPECT_EQ(y[0], 1.0f);
  EXPECT_EQ(y[1], GetParam().expected(-infinity));
  EXPECT_TRUE(std::isnan(y[2]));
}

INSTANTIATE_TEST_SUITE_P(
    Levels, GateRowsTest,
    testing::Values(Case{"logistic", nullptr, logisticRowBaseline, logistic},
                    Case{"logisticV3", "v3", logisticRowV3, logistic},
                    Case{"logisticV4", "v4", logisticRowV4, logistic},
                    Case{"tanh", nullptr, tanhRowBaseline, tangent},
                    Case{"tanhV3", "v3", tanhRowV3, tangent},
                    Case{"tanhV4", "v4", tanhRowV4, tangent}),
    [](const auto &each) { return std::string(each.param.name); });

} // namespace
} // namespace partita::runtime
