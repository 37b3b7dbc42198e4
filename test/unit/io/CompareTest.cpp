//===- CompareTest.cpp - numpy.allclose, element by element ---------------===//
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

TEST(Compare, nothingEqualsNothing) { EXPECT_TRUE(floats({}, {}).equal); }

} // namespace
