//===- CompareTest.cpp - By element and by the tensor's range -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support.h"

#include "runtime/io/Compare.h"

#include <cmath>
#include <limits>

using namespace partita;
using namespace partita::runtime;
using namespace partita::runtime::testing;
using partita::abi::DType;

namespace {

Comparison floats(std::vector<float> actual, std::vector<float> expected,
                  Tolerance tolerance = {}) {
  const auto size = int64_t(actual.size());
  return compareTensors(makeTensor<float>(DType::f32, {size}, actual),
                        makeTensor<float>(DType::f32, {size}, expected),
                        tolerance);
}

TEST(Compare, toleranceIsRelativeToTheExpectedValue) {
  EXPECT_TRUE(floats({1.0009f}, {1}).equal);
  EXPECT_FALSE(floats({1.002f}, {1}).equal);
  // 0.1 of 100 is allowed at 100, not at 1.
  EXPECT_TRUE(floats({100.05f}, {100}).equal);
  EXPECT_FALSE(floats({1.05f}, {1}).equal);
  EXPECT_TRUE(floats({1e-8f}, {0}).equal);
  EXPECT_FALSE(floats({1e-6f}, {0}).equal);
  EXPECT_TRUE(floats({1e-6f}, {0}, {0, 1e-5}).equal);
}

TEST(Compare, elementsNearZeroAreJudgedByTheRange) {
  // The median of 1000, 500 and 0.001 is 500: 500 * 1e-5 = 0.005.
  const std::vector<float> expected = {1000, 500, 0.001f};
  Comparison right = floats({1000, 500, 0.0059f}, expected);
  EXPECT_TRUE(right.equal);
  EXPECT_EQ(right.size, 500);
  EXPECT_EQ(right.byRange, 1);
  EXPECT_FALSE(floats({1000, 500, 0.0062f}, expected).equal);
  EXPECT_FALSE(floats({1000, 500, 0.0059f}, expected, {1e-3, 1e-7, 0}).equal);
  // Large elements keep their own tolerance: 1 and 0.5.
  EXPECT_TRUE(floats({1000.9f, 500.4f, 0.001f}, expected).equal);
  EXPECT_FALSE(floats({1001.1f, 500, 0.001f}, expected).equal);
  EXPECT_FALSE(floats({1000, 500.6f, 0.001f}, expected).equal);
}

TEST(Compare, theSizeIsTheMedianOfWhatIsFiniteAndNotZero) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::nanf("");
  const std::vector<float> zeros = {0, 0, 0, 0, -2};
  EXPECT_EQ(floats(zeros, zeros).size, 2);
  const std::vector<float> special = {nan, inf, -inf, 3, -1, 2};
  EXPECT_EQ(floats(special, special).size, 2);
  const std::vector<float> even = {4, -3, 2, 1};
  EXPECT_EQ(floats(even, even).size, 2);
  EXPECT_EQ(floats({0, 0}, {0, 0}).size, 0);
}

TEST(Compare, aFewHugeElementsDoNotWidenTheRange) {
  // As scores have it of which one is masked.
  const std::vector<float> expected = {1, 2, 3, -3.4e38f};
  EXPECT_EQ(floats(expected, expected).size, 2);
  EXPECT_FALSE(floats({1.01f, 2, 3, -3.4e38f}, expected).equal);
}

/// Wrong results that a range must not let pass. The median of the expected
/// values is 0.5, so that it allows 5e-6.
TEST(Compare, wrongResultsDiffer) {
  const std::vector<float> expected = {-1,   -0.5f, -0.25f, 1e-4f, 0.125f,
                                       0.5f, 0.75f, 1,      1.5f};
  auto changed = [&](auto change) {
    std::vector<float> actual = expected;
    for (size_t i = 0; i < actual.size(); ++i)
      actual[i] = change(i, expected[i]);
    return floats(actual, expected);
  };
  EXPECT_TRUE(changed([](size_t, float x) { return x + 4e-6f; }).equal);
  EXPECT_EQ(changed([](size_t, float x) { return x * 1.002f; }).mismatches, 8);
  // A bias that was left out, of a thousandth: beyond 1e-3 * |x| but for 1.5.
  EXPECT_EQ(changed([](size_t, float x) { return x + 1.1e-3f; }).mismatches, 8);
  // The sign of the smallest, a dropped element, two exchanged, one rounded to
  // bf16 (0.75 + 2^-8).
  EXPECT_EQ(
      changed([](size_t i, float x) { return i == 3 ? -x : x; }).mismatches, 1);
  EXPECT_EQ(
      changed([](size_t i, float x) { return i == 3 ? 0 : x; }).mismatches, 1);
  EXPECT_EQ(changed([&](size_t i, float x) {
              return i == 4 ? expected[5] : i == 5 ? expected[4] : x;
            }).mismatches,
            2);
  EXPECT_EQ(changed([](size_t i, float x) {
              return i == 6 ? 0.75390625f : x;
            }).mismatches,
            1);
}

TEST(Compare, integersHaveNoRange) {
  Tensor actual = makeTensor<int32_t>(DType::i32, {3}, {1000000, 1000000, 1});
  Tensor expected = makeTensor<int32_t>(DType::i32, {3}, {1000000, 1000000, 0});
  Comparison comparison = compareTensors(actual, expected);
  EXPECT_EQ(comparison.mismatches, 1);
  EXPECT_EQ(comparison.size, 0);
}

TEST(Compare, rmsAndCosine) {
  // Differences 1 and -1; 9 + 16 = 25; 12 + 12 = 24.
  Comparison comparison = floats({4, 3}, {3, 4});
  EXPECT_DOUBLE_EQ(comparison.rmsDifference, 1);
  EXPECT_DOUBLE_EQ(comparison.rmsExpected, std::sqrt(12.5));
  EXPECT_DOUBLE_EQ(comparison.cosine, 24.0 / 25);
  EXPECT_NE(comparison.text().find("rms diff 1 of 3.54, cosine 0.96"),
            std::string::npos)
      << comparison.text();
  EXPECT_DOUBLE_EQ(floats({-1, -2}, {1, 2}).cosine, -1);
  EXPECT_EQ(floats({0, 0}, {0, 0}).cosine, 1);
  EXPECT_EQ(floats({0, 1}, {0, 0}).cosine, 0);
  EXPECT_EQ(floats({0, 0}, {0, 1}).cosine, 0);
  // Of the elements that are finite in both.
  const float inf = std::numeric_limits<float>::infinity();
  Comparison special = floats({4, inf, 3, 1}, {3, inf, 4, inf});
  EXPECT_DOUBLE_EQ(special.rmsDifference, 1);
  EXPECT_DOUBLE_EQ(special.cosine, 24.0 / 25);
  // Squares that a double does not hold.
  Tensor large = makeTensor<double>(DType::f64, {2}, {3e300, 4e300});
  EXPECT_DOUBLE_EQ(compareTensors(large, large).rmsExpected,
                   std::sqrt(12.5) * 1e300);
  EXPECT_DOUBLE_EQ(compareTensors(large, large).cosine, 1);
}

TEST(Compare, specialValues) {
  const float nan = std::nanf("");
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(floats({nan, inf, -inf, 0.0f}, {nan, inf, -inf, -0.0f}).equal);
  for (auto [actual, expected] : {std::pair{nan, 1.0f},
                                  {1.0f, nan},
                                  {inf, -inf},
                                  {1.0f, inf},
                                  {inf, 1.0f}}) {
    Comparison comparison = floats({actual}, {expected});
    EXPECT_FALSE(comparison.equal) << actual << " " << expected;
    EXPECT_TRUE(std::isinf(comparison.maxAbsolute));
  }
}

TEST(Compare, reportsTheWorstElement) {
  Tensor actual = makeTensor<float>(DType::f32, {2, 3}, {1, 2, 3, 4, 9, 6.5});
  Tensor expected = makeTensor<float>(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  Comparison comparison = compareTensors(actual, expected);
  EXPECT_FALSE(comparison.equal);
  EXPECT_EQ(comparison.mismatches, 2);
  EXPECT_EQ(comparison.worstIndex, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(comparison.worstActual, 9);
  EXPECT_EQ(comparison.worstExpected, 5);
  EXPECT_EQ(comparison.maxAbsolute, 4);
  EXPECT_NE(comparison.text().find("2 of 6 elements differ; worst at [1, 1]: "
                                   "9 instead of 5"),
            std::string::npos)
      << comparison.text();
}

TEST(Compare, integersAreExact) {
  // Equal as doubles, one apart as integers.
  const int64_t large = int64_t(1) << 60;
  Tensor actual = makeTensor<int64_t>(DType::i64, {1}, {large + 1});
  Tensor expected = makeTensor<int64_t>(DType::i64, {1}, {large});
  EXPECT_FALSE(compareTensors(actual, expected, {0, 0}).equal);
  Tensor lowest = makeTensor<int64_t>(DType::i64, {1},
                                      {std::numeric_limits<int64_t>::min()});
  EXPECT_EQ(compareTensors(expected, lowest).mismatches, 1);
  Tensor big = makeTensor<uint64_t>(DType::u64, {1}, {~uint64_t(0)});
  Tensor less = makeTensor<uint64_t>(DType::u64, {1}, {~uint64_t(0) - 1});
  EXPECT_FALSE(compareTensors(big, less, {0, 0}).equal);
  EXPECT_TRUE(compareTensors(big, less).equal);
}

TEST(Compare, boolsMustBeEqual) {
  Tensor no = makeTensor<uint8_t>(DType::boolean, {1}, {0});
  Tensor yes = makeTensor<uint8_t>(DType::boolean, {1}, {1});
  EXPECT_FALSE(compareTensors(no, yes, {10, 10}).equal);
  EXPECT_TRUE(compareTensors(yes, yes).equal);
}

TEST(Compare, shapeAndTypeMustBeEqual) {
  Tensor a = makeTensor<float>(DType::f32, {2}, {1, 2});
  Tensor b = makeTensor<float>(DType::f32, {2, 1}, {1, 2});
  Comparison comparison = compareTensors(a, b);
  EXPECT_FALSE(comparison.equal);
  EXPECT_EQ(comparison.text(), "is float32 [2] instead of float32 [2, 1]");
  Tensor c = makeTensor<int32_t>(DType::i32, {2}, {1, 2});
  EXPECT_FALSE(compareTensors(a, c).equal);
}

TEST(Compare, toleranceIsThatOfTheType) {
  const Tolerances none;
  EXPECT_EQ(none.of(DType::f32).rtol, 1e-3);
  EXPECT_EQ(none.of(DType::f64).range, 1e-5);
  EXPECT_EQ(none.of(DType::f16).rtol, 0.015625);
  EXPECT_EQ(none.of(DType::bf16).range, 0.125);
  EXPECT_EQ(none.of(DType::i32).rtol, 1e-3);
  Tolerances asked;
  asked.rtol = 0;
  EXPECT_EQ(asked.of(DType::f16).rtol, 0);
  EXPECT_EQ(asked.of(DType::f16).range, 0.015625);
  // 1, and 15, 16 and 17 steps of f16 above it.
  for (auto [bits, equal] : {std::pair<uint16_t, bool>{0x3C0F, true},
                             {0x3C10, true},
                             {0x3C11, false}}) {
    Tensor one = makeTensor<uint16_t>(DType::f16, {1}, {0x3C00});
    Comparison comparison =
        compareTensors(makeTensor<uint16_t>(DType::f16, {1}, {bits}), one);
    EXPECT_EQ(comparison.equal, equal) << bits;
    EXPECT_EQ(comparison.maxSteps, bits - 0x3C00);
  }
}

TEST(Compare, differencesAreSaidInStepsOfTheType) {
  const float next = std::nextafterf(1, 2);
  EXPECT_EQ(floats({next}, {1}).maxSteps, 1);
  EXPECT_NE(floats({next}, {1}).text().find("(1 steps of float32)"),
            std::string::npos)
      << floats({next}, {1}).text();
  // An element near 0 counts in steps of the tensor's size.
  EXPECT_EQ(floats({1, 1, std::ldexp(1.0f, -22)}, {1, 1, 0}).maxSteps, 2);
  EXPECT_EQ(floats({1, 2}, {1, 2}).maxSteps, 0);
  Tensor bfloat = makeTensor<uint16_t>(DType::bf16, {1}, {0x3F80});
  EXPECT_EQ(
      compareTensors(makeTensor<uint16_t>(DType::bf16, {1}, {0x3F83}), bfloat)
          .maxSteps,
      3);
  // The smallest numbers are as far apart as denormal ones.
  Tensor tiny = makeTensor<uint16_t>(DType::f16, {1}, {1});
  EXPECT_EQ(
      compareTensors(makeTensor<uint16_t>(DType::f16, {1}, {3}), tiny).maxSteps,
      2);
}

TEST(Compare, saysStepsOfQuantisation) {
  auto bytes = [](std::vector<uint8_t> actual, std::vector<uint8_t> expected) {
    const auto size = int64_t(actual.size());
    return compareTensors(makeTensor<uint8_t>(DType::u8, {size}, actual),
                          makeTensor<uint8_t>(DType::u8, {size}, expected));
  };
  Comparison one = bytes({1, 2, 4, 3}, {1, 2, 3, 4});
  EXPECT_FALSE(one.equal);
  EXPECT_EQ(one.maxQuanta, 1);
  EXPECT_NE(one.text().find("2 of 4 elements differ, each by one step of "
                            "quantisation (1); worst"),
            std::string::npos)
      << one.text();
  EXPECT_EQ(bytes({1, 2, 7}, {1, 2, 3}).maxQuanta, 4);
  EXPECT_EQ(bytes({1, 2, 3}, {1, 2, 3}).maxQuanta, 0);

  // 0.0235 * (q - 3), as f32 rounds it.
  std::vector<float> expected;
  for (int q : {0, 3, 5, 9, 17, 100, 254, 255, 3, 9})
    expected.push_back(0.0235f * float(q - 3));
  auto changed = [&](size_t i, float by) {
    std::vector<float> actual = expected;
    actual[i] += by;
    return floats(actual, expected);
  };
  EXPECT_EQ(changed(4, 0.0235f).maxQuanta, 1);
  EXPECT_NEAR(changed(4, 0.0235f).quantum, 0.0235, 1e-6);
  EXPECT_NE(
      changed(4, -0.0235f)
          .text()
          .find("1 of 10 elements differ by one step of quantisation (0.0235)"),
      std::string::npos)
      << changed(4, -0.0235f).text();
  EXPECT_EQ(changed(4, 3 * 0.0235f).maxQuanta, 3);
  // No whole step; one element of two is off by less.
  EXPECT_EQ(changed(4, 0.03f).maxQuanta, 0);
  EXPECT_EQ(changed(4, std::numeric_limits<float>::infinity()).maxQuanta, 0);
  // Not quantised: whole numbers, numbers without a step, too few of them.
  const std::vector<float> whole = {1, 2, 3, 4, 5, 6, 7},
                           any = {0.11f, 0.231f,  -0.737f, 1.39f,
                                  0.52f, 0.0713f, 0.919f},
                           few = {0.5f, 1, 1.5f};
  for (const std::vector<float> &values : {whole, any, few}) {
    std::vector<float> actual = values;
    actual[0] += values[1];
    EXPECT_EQ(floats(actual, values).mismatches, 1);
    EXPECT_EQ(floats(actual, values).maxQuanta, 0) << values[0];
  }
}

TEST(Compare, nothingEqualsNothing) { EXPECT_TRUE(floats({}, {}).equal); }

} // namespace
