//===- AnnotatedMeshTest.cpp - Axes found in lists of devices -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/shard/AnnotatedMesh.h"

#include "gtest/gtest.h"

using namespace partita::shard;

namespace {

using Digits = std::vector<Digit>;
using Sizes = llvm::SmallVector<int64_t>;

TEST(AnnotatedMesh, FindsDigits) {
  EXPECT_EQ(findDigits({0, 0, 1, 1}, 2), (Digits{{2, 2}}));
  EXPECT_EQ(findDigits({0, 1, 0, 1}, 2), (Digits{{1, 2}}));
  EXPECT_EQ(findDigits({0, 1, 2, 3}, 4), (Digits{{1, 4}}));
  EXPECT_EQ(findDigits({0, 2, 1, 3}, 4), (Digits{{1, 2}, {2, 2}}));
  EXPECT_EQ(findDigits({0, 0, 0}, 1), Digits());
}

TEST(AnnotatedMesh, RefusesWhatIsNoDigit) {
  EXPECT_FALSE(findDigits({1, 0}, 2));
  EXPECT_FALSE(findDigits({0, 1, 1, 0}, 2));
  EXPECT_FALSE(findDigits({0, 1, 2, 2}, 4));
}

TEST(AnnotatedMesh, SplitsAxes) {
  AnnotatedMesh mesh(12);
  EXPECT_EQ(mesh.getSizes(), (Sizes{12}));
  EXPECT_TRUE(mesh.add(Digits{{2, 6}}));
  EXPECT_EQ(mesh.getSizes(), (Sizes{6, 2}));
  EXPECT_TRUE(mesh.add(Digits{{4, 3}}));
  EXPECT_EQ(mesh.getSizes(), (Sizes{3, 2, 2}));
  EXPECT_FALSE(mesh.add(Digits{{3, 4}}));
  EXPECT_FALSE(AnnotatedMesh(3).add(Digits{{2, 2}})); // 0 0 1
  EXPECT_EQ(mesh.getSizes(), (Sizes{3, 2, 2}));
  EXPECT_EQ(mesh.getAxes(Digits{{2, 6}}), (Sizes{0, 1}));
  EXPECT_EQ(mesh.getAxes(Digits{{1, 2}, {4, 3}}), (Sizes{2, 0}));
}

TEST(AnnotatedMesh, FindsTheAxisOfStages) {
  EXPECT_EQ(findStageAxis({2}, 2, {{0, 1}, {2, 3}}), 0u);
  EXPECT_EQ(findStageAxis({2}, 2, {{0, 2}, {1, 3}}), 1u);
  EXPECT_EQ(findStageAxis({2, 2}, 2, {{0, 1, 4, 5}, {2, 3, 6, 7}}), 1u);
  EXPECT_EQ(findStageAxis({}, 3, {{2}, {0}}), 0u);
  EXPECT_FALSE(findStageAxis({2}, 2, {{0, 3}, {1, 2}}));
  EXPECT_EQ(getPlace(6, {2, 2}, 2, 1), 1);
  EXPECT_EQ(getPlace(5, {2, 2}, 2, 1), 0);
}

} // namespace
