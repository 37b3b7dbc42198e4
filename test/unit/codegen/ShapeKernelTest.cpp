//===- ShapeKernelTest.cpp - Executed kernels: ops that move elements -----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"

#include <cmath>

using namespace partita::codegen::test;

TEST(ShapeKernel, Transpose) {
  std::vector<float> x = makeNumbers(4 * 5 * 67);
  auto result = runOps("(tensor<4x5x67xf32>) -> tensor<67x4x5xf32>", R"(
    %t = nn.transpose %0 [2, 0, 1] : tensor<4x5x67xf32> -> tensor<67x4x5xf32>
    nn.yield %t : tensor<67x4x5xf32>)",
                       {toBytes(x)});
  ASSERT_EQ(result.size(), 1u);
  auto y = fromBytes<float>(result[0]);
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 5; ++b)
      for (int c = 0; c < 67; ++c)
        EXPECT_EQ(y[(c * 4 + a) * 5 + b], x[(a * 5 + b) * 67 + c]);
}

TEST(ShapeKernel, TransposeOfMatricesOfManySizes) {
  for (auto [rows, columns] :
       {std::pair(3, 83), std::pair(83, 3), std::pair(70, 131), std::pair(4, 4),
        std::pair(24, 300), std::pair(129, 64)}) {
    std::vector<float> x = makeNumbers(2 * rows * columns),
                       y = makeNumbers(2 * rows * columns, 5);
    std::string from = "tensor<2x" + std::to_string(rows) + "x" +
                       std::to_string(columns) + "xf32>",
                to = "tensor<2x" + std::to_string(columns) + "x" +
                     std::to_string(rows) + "xf32>";
    auto result =
        runOps("(" + from + ", " + to + ") -> " + to,
               "%t = nn.transpose %0 [0, 2, 1] : " + from + " -> " + to +
                   "\n%a = nn.add %t, %1 : " + to + "\nnn.yield %a : " + to,
               {toBytes(x), toBytes(y)});
    ASSERT_EQ(result.size(), 1u);
    auto z = fromBytes<float>(result[0]);
    for (int n = 0; n < 2; ++n)
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < columns; ++c) {
          int at = (n * columns + c) * rows + r;
          EXPECT_EQ(z[at], x[(n * rows + r) * columns + c] + y[at]);
        }
  }
}

TEST(ShapeKernel, ConcatAndPadOfLongRows) {
  std::vector<float> x = makeNumbers(3 * 1500), y = makeNumbers(3 * 4000, 9);
  auto result = runOps("(tensor<3x1500xf32>, tensor<3x4000xf32>) -> "
                       "(tensor<3x5500xf32>, tensor<5x4100xf32>)",
                       R"(
    %c = nn.concat %0, %1 dim 1 : (tensor<3x1500xf32>, tensor<3x4000xf32>) -> tensor<3x5500xf32>
    %v = nn.constant dense<7.0> : tensor<f32>
    %p = nn.pad %1, %v low [1, 33] high [1, 67] : tensor<3x4000xf32>, tensor<f32> -> tensor<5x4100xf32>
    nn.yield %c, %p : tensor<3x5500xf32>, tensor<5x4100xf32>)",
                       {toBytes(x), toBytes(y)});
  ASSERT_EQ(result.size(), 2u);
  auto joined = fromBytes<float>(result[0]), pad = fromBytes<float>(result[1]);
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 5500; ++c)
      EXPECT_EQ(joined[r * 5500 + c],
                c < 1500 ? x[r * 1500 + c] : y[r * 4000 + c - 1500]);
  for (int r = 0; r < 5; ++r)
    for (int c = 0; c < 4100; ++c)
      EXPECT_EQ(pad[r * 4100 + c], r >= 1 && r < 4 && c >= 33 && c < 4033
                                       ? y[(r - 1) * 4000 + c - 33]
                                       : 7.0f);
}

TEST(ShapeKernel, GatherWithNegativeIndices) {
  std::vector<float> x = makeNumbers(2 * 6 * 20);
  std::vector<int64_t> indices{0, -1, 3, 5, -6, 2};
  auto result = runOps(
      "(tensor<2x6x20xf32>, tensor<3x2xi64>) -> tensor<2x3x2x20xf32>", R"(
    %g = nn.gather %0, %1 dim 1 : tensor<2x6x20xf32>, tensor<3x2xi64> -> tensor<2x3x2x20xf32>
    nn.yield %g : tensor<2x3x2x20xf32>)",
      {toBytes(x), toBytes(indices)});
  ASSERT_EQ(result.size(), 1u);
  auto y = fromBytes<float>(result[0]);
  for (int a = 0; a < 2; ++a)
    for (int i = 0; i < 6; ++i)
      for (int c = 0; c < 20; ++c) {
        int64_t index = indices[i] < 0 ? indices[i] + 6 : indices[i];
        EXPECT_EQ(y[(a * 6 + i) * 20 + c], x[(a * 6 + index) * 20 + c]);
      }
}

TEST(ShapeKernel, GatherElements) {
  std::vector<float> x = makeNumbers(3 * 6);
  std::vector<int64_t> indices{0, -1, 3, 5, -6, 2, 1, 1};
  auto result =
      runOps("(tensor<3x6xf32>, tensor<2x4xi64>) -> tensor<2x4xf32>", R"(
    %g = nn.gather_elements %0, %1 dim 1 : tensor<3x6xf32>, tensor<2x4xi64> -> tensor<2x4xf32>
    nn.yield %g : tensor<2x4xf32>)",
             {toBytes(x), toBytes(indices)});
  ASSERT_EQ(result.size(), 1u);
  auto y = fromBytes<float>(result[0]);
  for (int i = 0; i < 8; ++i) {
    int64_t index = indices[i] < 0 ? indices[i] + 6 : indices[i];
    EXPECT_EQ(y[i], x[i / 4 * 6 + index]);
  }
}

TEST(ShapeKernel, Concat) {
  std::vector<float> x = makeNumbers(3 * 4), y = makeNumbers(3 * 7, 9);
  auto result =
      runOps("(tensor<3x4xf32>, tensor<3x7xf32>) -> tensor<3x15xf32>", R"(
    %c = nn.concat %0, %1, %0 dim 1 : (tensor<3x4xf32>, tensor<3x7xf32>, tensor<3x4xf32>) -> tensor<3x15xf32>
    nn.yield %c : tensor<3x15xf32>)",
             {toBytes(x), toBytes(y)});
  ASSERT_EQ(result.size(), 1u);
  auto z = fromBytes<float>(result[0]);
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 15; ++c)
      EXPECT_EQ(z[r * 15 + c], c < 4    ? x[r * 4 + c]
                               : c < 11 ? y[r * 7 + c - 4]
                                        : x[r * 4 + c - 11]);
}

TEST(ShapeKernel, SliceReverseAndPad) {
  std::vector<float> x = makeNumbers(5 * 40);
  auto result = runOps("(tensor<5x40xf32>) -> (tensor<2x13xf32>, "
                       "tensor<5x40xf32>, tensor<6x45xf32>)",
                       R"(
    %s = nn.slice %0 [1, 2] to [5, 40] by [2, 3] : tensor<5x40xf32> -> tensor<2x13xf32>
    %r = nn.reverse %0 [0, 1] : tensor<5x40xf32>
    %v = nn.constant dense<7.0> : tensor<f32>
    %p = nn.pad %0, %v low [1, 2] high [0, 3] : tensor<5x40xf32>, tensor<f32> -> tensor<6x45xf32>
    nn.yield %s, %r, %p : tensor<2x13xf32>, tensor<5x40xf32>, tensor<6x45xf32>)",
                       {toBytes(x)});
  ASSERT_EQ(result.size(), 3u);
  auto slice = fromBytes<float>(result[0]),
       reverse = fromBytes<float>(result[1]), pad = fromBytes<float>(result[2]);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 13; ++j)
      EXPECT_EQ(slice[i * 13 + j], x[(1 + i * 2) * 40 + 2 + j * 3]);
  for (int i = 0; i < 200; ++i)
    EXPECT_EQ(reverse[i], x[199 - i]);
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 45; ++j)
      EXPECT_EQ(pad[i * 45 + j],
                i < 1 || j < 2 || j >= 42 ? 7.0f : x[(i - 1) * 40 + j - 2]);
}

TEST(ShapeKernel, ReshapeOfComputed) {
  std::vector<float> x = makeNumbers(6 * 10);
  auto result = runOps("(tensor<6x10xf32>) -> tensor<4x15xf32>", R"(
    %n = nn.neg %0 : tensor<6x10xf32>
    %r = nn.reshape %n : tensor<6x10xf32> -> tensor<4x15xf32>
    %a = nn.abs %r : tensor<4x15xf32>
    %s = nn.sub %r, %a : tensor<4x15xf32>
    nn.yield %s : tensor<4x15xf32>)",
                       {toBytes(x)});
  ASSERT_EQ(result.size(), 1u);
  auto y = fromBytes<float>(result[0]);
  for (int i = 0; i < 60; ++i)
    EXPECT_EQ(y[i], -x[i] - std::abs(x[i]));
}

TEST(ShapeKernel, IotaAndTable) {
  auto result = runOps("() -> (tensor<3x20xi64>, tensor<3x4xf32>)", R"(
    %i = nn.iota 1 : tensor<3x20xi64>
    %t = nn.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    %b = nn.broadcast %t [1] : tensor<4xf32> -> tensor<3x4xf32>
    nn.yield %i, %b : tensor<3x20xi64>, tensor<3x4xf32>)",
                       {});
  ASSERT_EQ(result.size(), 2u);
  auto iota = fromBytes<int64_t>(result[0]);
  auto table = fromBytes<float>(result[1]);
  for (int i = 0; i < 60; ++i)
    EXPECT_EQ(iota[i], i % 20);
  for (int i = 0; i < 12; ++i)
    EXPECT_EQ(table[i], i % 4 + 1.0f);
}
