//===- ReductionKernelTest.cpp - Reductions and products, run -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"

#include <algorithm>
#include <cmath>

using namespace partita::codegen::test;

namespace {

std::vector<float> softmax(const std::vector<float> &x, size_t n) {
  std::vector<float> y(x.size());
  for (size_t row = 0; row < x.size(); row += n) {
    float max = *std::max_element(&x[row], &x[row] + n);
    double sum = 0;
    for (size_t i = 0; i < n; ++i)
      sum += std::exp(double(x[row + i]) - max);
    for (size_t i = 0; i < n; ++i)
      y[row + i] = std::exp(double(x[row + i]) - max) / sum;
  }
  return y;
}

} // namespace

class SoftmaxKernel : public testing::TestWithParam<int> {};

TEST_P(SoftmaxKernel, LastDimension) {
  int n = GetParam();
  std::string type = "tensor<2x5x" + std::to_string(n) + "xf32>";
  std::vector<float> x = makeNumbers(10 * n);
  auto result =
      runOps("(" + type + ") -> " + type,
             "%s = nn.softmax %0 dim 2 : " + type + "\n nn.yield %s : " + type,
             {toBytes(x)});
  ASSERT_EQ(result.size(), 1u);
  expectNear(fromBytes<float>(result[0]), softmax(x, n), 3e-6, 0);
}

INSTANTIATE_TEST_SUITE_P(Sizes, SoftmaxKernel,
                         testing::Values(1, 7, 64, 65, 1000, 50000));

TEST(ReductionKernel, SoftmaxAlongMiddle) {
  std::vector<float> x = makeNumbers(3 * 11 * 70), turned(x.size());
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 11; ++b)
      for (int c = 0; c < 70; ++c)
        turned[(a * 70 + c) * 11 + b] = x[(a * 11 + b) * 70 + c];
  auto result = runOps("(tensor<3x11x70xf32>) -> tensor<3x11x70xf32>", R"(
    %s = nn.softmax %0 dim 1 : tensor<3x11x70xf32>
    nn.yield %s : tensor<3x11x70xf32>)",
                       {toBytes(x)});
  ASSERT_EQ(result.size(), 1u);
  std::vector<float> expected = softmax(turned, 11), actual(x.size());
  std::vector<float> y = fromBytes<float>(result[0]);
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 11; ++b)
      for (int c = 0; c < 70; ++c)
        actual[(a * 70 + c) * 11 + b] = y[(a * 11 + b) * 70 + c];
  expectNear(actual, expected, 3e-6, 0);
}

TEST(ReductionKernel, LayerNormWithSum) {
  constexpr int rows = 9, n = 100;
  std::vector<float> a = makeNumbers(rows * n), b = makeNumbers(rows * n, 2),
                     gamma = makeNumbers(n, 1), beta = makeNumbers(n, 3);
  auto result =
      runOps("(tensor<1x9x100xf32>, tensor<1x9x100xf32>, tensor<100xf32>, "
             "tensor<100xf32>) -> (tensor<1x9x100xf32>, tensor<1x9x100xf32>)",
             R"(
    %n = nn.constant dense<0.01> : tensor<1x9x1xf32>
    %eps = nn.constant dense<1.0e-05> : tensor<1x9x1xf32>
    %x = nn.add %0, %1 : tensor<1x9x100xf32>
    %sum = nn.reduce sum %x [2] : tensor<1x9x100xf32> -> tensor<1x9xf32>
    %keep = nn.reshape %sum : tensor<1x9xf32> -> tensor<1x9x1xf32>
    %mean = nn.mul %keep, %n : tensor<1x9x1xf32>
    %mb = nn.broadcast %mean [0, 1, 2] : tensor<1x9x1xf32> -> tensor<1x9x100xf32>
    %c = nn.sub %x, %mb : tensor<1x9x100xf32>
    %sq = nn.mul %c, %c : tensor<1x9x100xf32>
    %ss = nn.reduce sum %sq [2] : tensor<1x9x100xf32> -> tensor<1x9xf32>
    %sk = nn.reshape %ss : tensor<1x9xf32> -> tensor<1x9x1xf32>
    %var = nn.mul %sk, %n : tensor<1x9x1xf32>
    %ve = nn.add %var, %eps : tensor<1x9x1xf32>
    %sd = nn.sqrt %ve : tensor<1x9x1xf32>
    %sb = nn.broadcast %sd [0, 1, 2] : tensor<1x9x1xf32> -> tensor<1x9x100xf32>
    %d = nn.div %c, %sb : tensor<1x9x100xf32>
    %g = nn.broadcast %2 [2] : tensor<100xf32> -> tensor<1x9x100xf32>
    %be = nn.broadcast %3 [2] : tensor<100xf32> -> tensor<1x9x100xf32>
    %m = nn.mul %d, %g : tensor<1x9x100xf32>
    %r = nn.add %m, %be : tensor<1x9x100xf32>
    nn.yield %x, %r : tensor<1x9x100xf32>, tensor<1x9x100xf32>)",
             {toBytes(a), toBytes(b), toBytes(gamma), toBytes(beta)});
  ASSERT_EQ(result.size(), 2u);
  std::vector<float> sum(a), expected(a);
  for (int row = 0; row < rows; ++row) {
    double mean = 0, var = 0;
    for (int i = 0; i < n; ++i) {
      sum[row * n + i] = a[row * n + i] + b[row * n + i];
      mean += sum[row * n + i] / n;
    }
    for (int i = 0; i < n; ++i)
      var += (sum[row * n + i] - mean) * (sum[row * n + i] - mean) / n;
    for (int i = 0; i < n; ++i)
      expected[row * n + i] =
          (sum[row * n + i] - mean) / std::sqrt(var + 1e-5) * gamma[i] +
          beta[i];
  }
  expectNear(fromBytes<float>(result[0]), sum, 0, 0);
  expectNear(fromBytes<float>(result[1]), expected, 1e-5, 1e-5);
}

TEST(ReductionKernel, AllAndNone) {
  std::vector<int32_t> x(7 * 33);
  int32_t sum = 0;
  for (size_t i = 0; i < x.size(); ++i)
    sum += x[i] = int32_t(i * 7919 % 1000) - 500;
  auto result = runOps("(tensor<7x33xi32>) -> (tensor<i32>, tensor<i32>, "
                       "tensor<33xi32>)",
                       R"(
    %s = nn.reduce sum %0 [0, 1] : tensor<7x33xi32> -> tensor<i32>
    %m = nn.reduce max %0 [0, 1] : tensor<7x33xi32> -> tensor<i32>
    %c = nn.reduce min %0 [0] : tensor<7x33xi32> -> tensor<33xi32>
    nn.yield %s, %m, %c : tensor<i32>, tensor<i32>, tensor<33xi32>)",
                       {toBytes(x)});
  ASSERT_EQ(result.size(), 3u);
  EXPECT_EQ(fromBytes<int32_t>(result[0])[0], sum);
  EXPECT_EQ(fromBytes<int32_t>(result[1])[0],
            *std::max_element(x.begin(), x.end()));
  auto columns = fromBytes<int32_t>(result[2]);
  for (int c = 0; c < 33; ++c) {
    int32_t least = x[c];
    for (int r = 1; r < 7; ++r)
      least = std::min(least, x[r * 33 + c]);
    EXPECT_EQ(columns[c], least);
  }
}

TEST(ReductionKernel, MaxPoolWithPadsAndDilation) {
  constexpr int size = 9, out = 5;
  std::vector<float> x = makeNumbers(2 * size * size);
  auto result = runOps(
      "(tensor<1x2x9x9xf32>) -> (tensor<1x2x5x5xf32>, tensor<1x2x5x5xi32>, "
      "tensor<1x2x9x9xf32>)",
      R"(
    %p = nn.window_reduce max %0 window [1, 1, 2, 2] strides [1, 1, 2, 2] dilations [1, 1, 2, 2] pads [0, 0, 1, 1] x [0, 0, 1, 1]
      : tensor<1x2x9x9xf32> -> tensor<1x2x5x5xf32>
    %i = nn.window_arg_max %0 window [1, 1, 2, 2] strides [1, 1, 2, 2] dilations [1, 1, 2, 2] pads [0, 0, 1, 1] x [0, 0, 1, 1]
      : tensor<1x2x9x9xf32> -> tensor<1x2x5x5xi32>
    %s = nn.window_spread %p at %i window [1, 1, 2, 2] strides [1, 1, 2, 2] dilations [1, 1, 2, 2] pads [0, 0, 1, 1] x [0, 0, 1, 1]
      : tensor<1x2x5x5xf32>, tensor<1x2x5x5xi32> -> tensor<1x2x9x9xf32>
    nn.yield %p, %i, %s : tensor<1x2x5x5xf32>, tensor<1x2x5x5xi32>, tensor<1x2x9x9xf32>)",
      {toBytes(x)});
  ASSERT_EQ(result.size(), 3u);
  auto y = fromBytes<float>(result[0]);
  auto where = fromBytes<int32_t>(result[1]);
  std::vector<float> spread(2 * size * size);
  for (int c = 0; c < 2; ++c)
    for (int i = 0; i < out; ++i)
      for (int j = 0; j < out; ++j) {
        float best = -INFINITY;
        int number = -1, at = -1;
        for (int a = 0; a < 2; ++a)
          for (int b = 0; b < 2; ++b) {
            int r = i * 2 + a * 2 - 1, s = j * 2 + b * 2 - 1;
            if (r < 0 || s < 0 || r >= size || s >= size)
              continue;
            int flat = (c * size + r) * size + s;
            if (x[flat] > best) {
              best = x[flat];
              number = 2 * a + b;
              at = flat;
            }
          }
        EXPECT_EQ(y[(c * out + i) * out + j], best);
        EXPECT_EQ(where[(c * out + i) * out + j], number);
        spread[at] += best;
      }
  EXPECT_EQ(fromBytes<float>(result[2]), spread);
}

TEST(ReductionKernel, TheFirstOfEqualElementsIsTheLargestAndNaNIsAbove) {
  const float nan = NAN, low = -INFINITY;
  auto result = runOps("(tensor<2x6xf32>) -> tensor<2x2xi32>", R"(
    %i = nn.window_arg_max %0 window [1, 3] strides [1, 3] dilations [1, 1] pads [0, 0] x [0, 0]
      : tensor<2x6xf32> -> tensor<2x2xi32>
    nn.yield %i : tensor<2x2xi32>)",
                       {toBytes(std::vector<float>{1, 2, 2, low, low, low, 1,
                                                   nan, 3, 2, 1, 2})});
  ASSERT_EQ(result.size(), 1u);
  EXPECT_EQ(fromBytes<int32_t>(result[0]), (std::vector<int32_t>{1, 0, 1, 0}));
}

TEST(ReductionKernel, DoubleConvolution) {
  std::vector<double> x, w;
  for (float v : makeNumbers(4 * 6 * 6))
    x.push_back(v);
  for (float v : makeNumbers(6 * 2 * 3 * 3, 1))
    w.push_back(v);
  auto result = runOps(
      "(tensor<1x4x6x6xf64>, tensor<6x2x3x3xf64>) -> tensor<1x6x3x3xf64>", R"(
    %r = nn.conv %0, %1 channels_first strides [2, 2] dilations [1, 1] pads [1, 1] x [1, 1] groups 2
      : tensor<1x4x6x6xf64>, tensor<6x2x3x3xf64> -> tensor<1x6x3x3xf64>
    nn.yield %r : tensor<1x6x3x3xf64>)",
      {toBytes(x), toBytes(w)});
  ASSERT_EQ(result.size(), 1u);
  auto y = fromBytes<double>(result[0]);
  for (int o = 0; o < 6; ++o)
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) {
        double sum = 0;
        for (int c = 0; c < 2; ++c)
          for (int a = 0; a < 3; ++a)
            for (int b = 0; b < 3; ++b) {
              int r = i * 2 + a - 1, s = j * 2 + b - 1;
              if (r >= 0 && s >= 0 && r < 6 && s < 6)
                sum += x[((o / 3 * 2 + c) * 6 + r) * 6 + s] *
                       w[((o * 2 + c) * 3 + a) * 3 + b];
            }
        EXPECT_NEAR(y[(o * 3 + i) * 3 + j], sum, 1e-12);
      }
}

TEST(ReductionKernel, IntegerDot) {
  std::vector<int32_t> a(2 * 5 * 7), b(2 * 7 * 20);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = int(i % 13) - 6;
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = int(i % 17) - 8;
  auto result = runOps(
      "(tensor<2x5x7xi32>, tensor<2x7x20xi32>) -> tensor<2x5x20xi32>", R"(
    %r = nn.dot %0, %1 batch [0] x [0] contract [2] x [1] : tensor<2x5x7xi32>, tensor<2x7x20xi32> -> tensor<2x5x20xi32>
    nn.yield %r : tensor<2x5x20xi32>)",
      {toBytes(a), toBytes(b)});
  ASSERT_EQ(result.size(), 1u);
  auto y = fromBytes<int32_t>(result[0]);
  for (int g = 0; g < 2; ++g)
    for (int i = 0; i < 5; ++i)
      for (int j = 0; j < 20; ++j) {
        int32_t sum = 0;
        for (int k = 0; k < 7; ++k)
          sum += a[(g * 5 + i) * 7 + k] * b[(g * 7 + k) * 20 + j];
        EXPECT_EQ(y[(g * 5 + i) * 20 + j], sum);
      }
}

TEST(ReductionKernel, DoubleAttention) {
  constexpr int m = 3, l = 5, d = 4;
  auto doubles = [](std::vector<float> v) {
    return std::vector<double>(v.begin(), v.end());
  };
  auto q = doubles(makeNumbers(2 * m * d)), k = doubles(makeNumbers(2 * l * d)),
       v = doubles(makeNumbers(2 * l * d, 1));
  auto result = runOps("(tensor<1x2x3x4xf64>, tensor<1x2x5x4xf64>, "
                       "tensor<1x2x5x4xf64>) -> tensor<1x2x3x4xf64>",
                       R"(
    %r = nn.attention %0, %1, %2 scale 0.5 : tensor<1x2x3x4xf64>, tensor<1x2x5x4xf64>, tensor<1x2x5x4xf64> -> tensor<1x2x3x4xf64>
    nn.yield %r : tensor<1x2x3x4xf64>)",
                       {toBytes(q), toBytes(k), toBytes(v)});
  ASSERT_EQ(result.size(), 1u);
  auto y = fromBytes<double>(result[0]);
  for (int h = 0; h < 2; ++h)
    for (int i = 0; i < m; ++i) {
      double weights[l], sum = 0;
      for (int j = 0; j < l; ++j) {
        double score = 0;
        for (int e = 0; e < d; ++e)
          score += q[(h * m + i) * d + e] * k[(h * l + j) * d + e];
        sum += weights[j] = std::exp(score * 0.5);
      }
      for (int e = 0; e < d; ++e) {
        double expected = 0;
        for (int j = 0; j < l; ++j)
          expected += weights[j] / sum * v[(h * l + j) * d + e];
        EXPECT_NEAR(y[(h * m + i) * d + e], expected, 1e-12);
      }
    }
}
