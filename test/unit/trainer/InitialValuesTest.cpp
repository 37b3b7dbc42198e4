//===- InitialValuesTest.cpp - What training begins with ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/trainer/InitialValues.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

using namespace partita::runtime::train;

namespace {

std::vector<double> drawn(const Distribution &from, uint64_t seed,
                          const std::string &name, size_t count = 20000) {
  std::vector<double> values(count);
  draw(from, seed, name, std::span(values));
  return values;
}

double mean(const std::vector<double> &values, int power = 1) {
  double sum = 0;
  for (double value : values)
    sum += std::pow(value, power);
  return sum / static_cast<double>(values.size());
}

constexpr Distribution kNormal{Distribution::Kind::normal, 0, 1};
constexpr Distribution kUniform{Distribution::Kind::uniform, -2, 4};

TEST(Distribution, IsReadFromText) {
  const auto uniform = parseDistribution("uniform,low=-5e-1,high=2.5");
  ASSERT_TRUE(uniform);
  EXPECT_EQ(uniform->kind, Distribution::Kind::uniform);
  EXPECT_EQ(uniform->first, -0.5);
  EXPECT_EQ(uniform->second, 2.5);
  const auto normal = parseDistribution("normal,mean=1,std=0");
  ASSERT_TRUE(normal);
  EXPECT_EQ(normal->kind, Distribution::Kind::normal);
  const auto constant = parseDistribution("constant,value=3");
  ASSERT_TRUE(constant);
  EXPECT_EQ(constant->first, 3);
}

TEST(Distribution, WrongTextsAreRefused) {
  for (const char *text :
       {"", "constant", "constant,value=", "constant,value=x",
        "constant,value=1e999", "constant,value=nan", "normal,mean=0",
        "normal,std=1", "uniform,low=0,high=1x", "cauchy,value=1",
        "uniforms,low=0,high=1"})
    EXPECT_FALSE(parseDistribution(text)) << text;
}

/// Mean, variance and fourth moment, within five deviations of each.
TEST(InitialValues, HaveTheMomentsOfTheirDistribution) {
  const std::vector<double> normal = drawn(kNormal, 1, "w");
  const double root = std::sqrt(static_cast<double>(normal.size()));
  EXPECT_NEAR(mean(normal), 0, 5 / root);
  EXPECT_NEAR(mean(normal, 2), 1, 5 * std::sqrt(2) / root);
  EXPECT_NEAR(mean(normal, 4), 3, 5 * std::sqrt(96) / root);
  const std::vector<double> uniform = drawn(kUniform, 1, "w");
  EXPECT_NEAR(mean(uniform), 1, 5 * std::sqrt(3) / root);
  EXPECT_GE(*std::min_element(uniform.begin(), uniform.end()), -2);
  EXPECT_LT(*std::max_element(uniform.begin(), uniform.end()), 4);
  for (double quarter : {-0.5, 1.0, 2.5}) {
    const auto below = static_cast<double>(
        std::count_if(uniform.begin(), uniform.end(),
                      [=](double value) { return value < quarter; }));
    const double share = (quarter + 2) / 6;
    EXPECT_NEAR(below / 20000, share,
                5 * std::sqrt(share * (1 - share)) / root);
  }
}

TEST(InitialValues, DependOnSeedNameAndPlaceAlone) {
  const std::vector<double> first = drawn(kNormal, 1, "w", 100);
  EXPECT_EQ(first, drawn(kNormal, 1, "w", 100));
  std::vector<double> part = drawn(kNormal, 1, "w", 40);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), first.begin()));
  EXPECT_NE(first, drawn(kNormal, 2, "w", 100));
  EXPECT_NE(first, drawn(kNormal, uint64_t(1) << 32 | 1, "w", 100));
  EXPECT_NE(first, drawn(kNormal, 1, "v", 100));
  // Two tensors, and neighbours in one, have nothing to do with each other.
  const std::vector<double> w = drawn(kNormal, 1, "w"),
                            v = drawn(kNormal, 1, "v");
  double between = 0, within = 0;
  for (size_t i = 1; i < w.size(); ++i) {
    between += w[i] * v[i];
    within += w[i] * w[i - 1];
  }
  EXPECT_NEAR(between / 20000, 0, 5 / std::sqrt(20000));
  EXPECT_NEAR(within / 20000, 0, 5 / std::sqrt(20000));
}

TEST(InitialValues, FloatsAreRoundedDoubles) {
  std::vector<float> floats(100);
  draw(kNormal, 7, "w", std::span(floats));
  const std::vector<double> doubles = drawn(kNormal, 7, "w", 100);
  for (size_t i = 0; i < floats.size(); ++i)
    EXPECT_EQ(floats[i], static_cast<float>(doubles[i]));
  std::vector<float> none;
  draw(kNormal, 7, "w", std::span(none));
}

} // namespace
