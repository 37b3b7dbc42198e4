//===- PointwiseKernelTest.cpp - Executed kernels: pointwise ops ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"

#include <cmath>

using namespace partita::codegen::test;

TEST(PointwiseKernel, BroadcastBias) {
  std::vector<float> x = makeNumbers(3 * 5 * 70), bias = makeNumbers(70, 1);
  auto result =
      runOps("(tensor<3x5x70xf32>, tensor<70xf32>) -> tensor<3x5x70xf32>", R"(
    %b = nn.broadcast %1 [2] : tensor<70xf32> -> tensor<3x5x70xf32>
    %s = nn.add %0, %b : tensor<3x5x70xf32>
    %r = nn.relu %s : tensor<3x5x70xf32>
    nn.yield %r : tensor<3x5x70xf32>)",
             {toBytes(x), toBytes(bias)});
  ASSERT_EQ(result.size(), 1u);
  std::vector<float> expected(x);
  for (size_t i = 0; i < x.size(); ++i)
    expected[i] = std::max(0.0f, x[i] + bias[i % 70]);
  expectNear(fromBytes<float>(result[0]), expected, 0, 0);
}

TEST(PointwiseKernel, LongWithRest) {
  constexpr size_t n = 100003;
  std::vector<float> x = makeNumbers(n);
  auto result = runOps("(tensor<100003xf32>) -> tensor<100003xf32>", R"(
    %e = nn.exp %0 : tensor<100003xf32>
    nn.yield %e : tensor<100003xf32>)",
                       {toBytes(x)});
  ASSERT_EQ(result.size(), 1u);
  std::vector<float> expected(n);
  for (size_t i = 0; i < n; ++i)
    expected[i] = std::exp(x[i]);
  expectNear(fromBytes<float>(result[0]), expected, 5e-7, 0);
}

TEST(PointwiseKernel, GeluOfTransposed) {
  std::vector<float> x = makeNumbers(6 * 33);
  auto result = runOps("(tensor<6x33xf32>) -> tensor<33x6xf32>", R"(
    %half = nn.constant dense<0.5> : tensor<33x6xf32>
    %one = nn.constant dense<1.0> : tensor<33x6xf32>
    %root = nn.constant dense<1.41421354> : tensor<33x6xf32>
    %t = nn.transpose %0 [1, 0] : tensor<6x33xf32> -> tensor<33x6xf32>
    %d = nn.div %t, %root : tensor<33x6xf32>
    %e = nn.erf %d : tensor<33x6xf32>
    %p = nn.add %e, %one : tensor<33x6xf32>
    %m = nn.mul %t, %p : tensor<33x6xf32>
    %r = nn.mul %m, %half : tensor<33x6xf32>
    nn.yield %r : tensor<33x6xf32>)",
                       {toBytes(x)});
  ASSERT_EQ(result.size(), 1u);
  std::vector<float> expected(x.size());
  for (int i = 0; i < 33; ++i)
    for (int j = 0; j < 6; ++j) {
      double v = x[j * 33 + i];
      expected[i * 6 + j] = 0.5 * v * (1 + std::erf(v / std::sqrt(2.0)));
    }
  expectNear(fromBytes<float>(result[0]), expected, 2e-6, 1e-6);
}

TEST(PointwiseKernel, Casts) {
  std::vector<float> x = makeNumbers(130, 100);
  auto result = runOps(
      "(tensor<130xf32>) -> (tensor<130xi8>, tensor<130xi1>, tensor<130xf64>, "
      "tensor<130xf16>)",
      R"(
    %a = nn.cast %0 : tensor<130xf32> -> tensor<130xi8>
    %b = nn.cast %0 : tensor<130xf32> -> tensor<130xi1>
    %c = nn.cast %0 : tensor<130xf32> -> tensor<130xf64>
    %d = nn.cast %0 : tensor<130xf32> -> tensor<130xf16>
    nn.yield %a, %b, %c, %d : tensor<130xi8>, tensor<130xi1>, tensor<130xf64>, tensor<130xf16>)",
      {toBytes(x)});
  ASSERT_EQ(result.size(), 4u);
  auto bytes = fromBytes<int8_t>(result[0]);
  auto bools = fromBytes<int8_t>(result[1]);
  auto doubles = fromBytes<double>(result[2]);
  auto halves = fromBytes<_Float16>(result[3]);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(bytes[i], int8_t(x[i]));
    EXPECT_EQ(bools[i], x[i] != 0);
    EXPECT_EQ(doubles[i], double(x[i]));
    EXPECT_EQ(halves[i], _Float16(x[i]));
  }
}

TEST(PointwiseKernel, UnsignedAndBooleans) {
  std::vector<uint8_t> x{0, 1, 100, 200, 255}, y{1, 0, 200, 100, 255};
  auto result = runOps(
      "(tensor<5xui8>, tensor<5xui8>) -> (tensor<5xui8>, tensor<5xi1>)", R"(
    %l = nn.compare lt %0, %1 : tensor<5xui8> -> tensor<5xi1>
    %n = nn.not %l : tensor<5xi1>
    %s = nn.select %n, %0, %1 : tensor<5xi1>, tensor<5xui8>
    nn.yield %s, %n : tensor<5xui8>, tensor<5xi1>)",
      {toBytes(x), toBytes(y)});
  ASSERT_EQ(result.size(), 2u);
  EXPECT_EQ(fromBytes<uint8_t>(result[0]),
            (std::vector<uint8_t>{1, 1, 200, 200, 255}));
  EXPECT_EQ(fromBytes<uint8_t>(result[1]),
            (std::vector<uint8_t>{0, 1, 0, 1, 1}));
}

TEST(PointwiseKernel, HalfPrecision) {
  std::vector<_Float16> x;
  for (float v : makeNumbers(100))
    x.push_back(v);
  for (const char *type : {"f16"}) {
    std::string t = std::string("tensor<100x") + type + ">";
    auto result = runOps("(" + t + ") -> " + t,
                         "%e = nn.tanh %0 : " + t + "\n nn.yield %e : " + t,
                         {toBytes(x)});
    ASSERT_EQ(result.size(), 1u);
    auto y = fromBytes<_Float16>(result[0]);
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(float(y[i]), std::tanh(float(x[i])), 1e-3);
  }
}

TEST(PointwiseKernel, Bfloat16) {
  std::vector<uint16_t> x;
  std::vector<float> values = makeNumbers(90);
  for (float &v : values) {
    uint32_t bits;
    std::memcpy(&bits, &v, 4);
    bits &= 0xffff0000;
    std::memcpy(&v, &bits, 4);
    x.push_back(bits >> 16);
  }
  auto result = runOps("(tensor<90xbf16>) -> tensor<90xf32>", R"(
    %e = nn.mul %0, %0 : tensor<90xbf16>
    %f = nn.cast %e : tensor<90xbf16> -> tensor<90xf32>
    nn.yield %f : tensor<90xf32>)",
                       {toBytes(x)});
  ASSERT_EQ(result.size(), 1u);
  auto y = fromBytes<float>(result[0]);
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(y[i], values[i] * values[i], 0.01 * values[i] * values[i]);
}

/// Every op rounds what it gives, fused or not: 2048 + 1 is 2048 in f16.
TEST(PointwiseKernel, Float16RoundsEveryResult) {
  std::vector<_Float16> x(90, _Float16(2048)), one(90, _Float16(1));
  auto result = runOps("(tensor<90xf16>, tensor<90xf16>) -> tensor<90xf16>", R"(
    %s = nn.add %0, %1 : tensor<90xf16>
    %d = nn.sub %s, %0 : tensor<90xf16>
    nn.yield %d : tensor<90xf16>)",
                       {toBytes(x), toBytes(one)});
  ASSERT_EQ(result.size(), 1u);
  for (_Float16 y : fromBytes<_Float16>(result[0]))
    EXPECT_EQ(float(y), 0.0f);
}

/// Vectors of numbers of 16 bits are chosen from by their bits.
TEST(PointwiseKernel, SelectBfloat16) {
  std::vector<uint16_t> x, y;
  std::vector<int8_t> predicate;
  for (int i = 0; i < 90; ++i) {
    x.push_back(uint16_t(0x3f80 + i));
    y.push_back(uint16_t(0xbf80 + 2 * i));
    predicate.push_back(i % 3 == 0);
  }
  auto result = runOps("(tensor<90xi1>, tensor<90xbf16>, tensor<90xbf16>) -> "
                       "tensor<90xbf16>",
                       R"(
    %s = nn.select %0, %1, %2 : tensor<90xi1>, tensor<90xbf16>
    nn.yield %s : tensor<90xbf16>)",
                       {toBytes(predicate), toBytes(x), toBytes(y)});
  ASSERT_EQ(result.size(), 1u);
  auto chosen = fromBytes<uint16_t>(result[0]);
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(chosen[i], predicate[i] ? x[i] : y[i]) << i;
}
