//===- AccuracyTest.cpp - Labels that are predicted -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/trainer/Accuracy.h"

#include <gtest/gtest.h>
#include <limits>
#include <vector>

using namespace partita::runtime::train;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

/// "labels, right, right of five".
template <typename T>
std::vector<int64_t> count(const std::vector<T> &scores,
                           const std::vector<int64_t> &labels, int64_t classes,
                           int64_t inner = 1, int64_t ignored = -100) {
  const auto outer = static_cast<int64_t>(labels.size()) / inner;
  EXPECT_EQ(static_cast<int64_t>(scores.size()), outer * classes * inner);
  const LabelCount found = countRight(scores.data(), labels.data(),
                                      {outer, classes, inner}, ignored);
  return {found.labels, found.right, found.rightOfFive};
}

using Counts = std::vector<int64_t>;

TEST(Accuracy, TheLargestScoreIsThePrediction) {
  EXPECT_EQ(count<float>({1, 2, 3, 3, 2, 1}, {2, 0}, 3), (Counts{2, 2, 2}));
  EXPECT_EQ(count<float>({1, 2, 3, 3, 2, 1}, {0, 0}, 3), (Counts{2, 1, 2}));
  EXPECT_EQ(count<double>({-1, -2, -3}, {0}, 3), (Counts{1, 1, 1}));
  EXPECT_EQ(count<float>({}, {}, 3), (Counts{0, 0, 0}));
  EXPECT_EQ(count<float>({7}, {0}, 1), (Counts{1, 1, 1}));
}

TEST(Accuracy, TheFirstOfEqualScoresIsThePrediction) {
  EXPECT_EQ(count<float>({1, 5, 5}, {1}, 3), (Counts{1, 1, 1}));
  EXPECT_EQ(count<float>({1, 5, 5}, {2}, 3), (Counts{1, 0, 1}));
  EXPECT_EQ(count<float>({0.0f, -0.0f}, {1}, 2), (Counts{1, 0, 1}));
  // Of equal scores the first five are among five.
  const std::vector<float> same(7, 2);
  for (int64_t label = 0; label < 7; ++label)
    EXPECT_EQ(count<float>(same, {label}, 7),
              (Counts{1, label == 0, label < 5}));
}

TEST(Accuracy, FiveLargestScores) {
  const std::vector<float> scores = {10, 20, 30, 40, 50, 60, 70};
  for (int64_t label = 0; label < 7; ++label)
    EXPECT_EQ(count<float>(scores, {label}, 7),
              (Counts{1, label == 6, label >= 2}))
        << label;
}

TEST(Accuracy, LabelsThatDoNotCount) {
  EXPECT_EQ(count<float>({1, 2, 1, 2}, {-100, 1}, 2), (Counts{1, 1, 1}));
  EXPECT_EQ(count<float>({1, 2, 2, 1}, {0, 0}, 2, 1, 0), (Counts{0, 0, 0}));
}

TEST(Accuracy, LabelsThatAreNoClassAreWrong) {
  for (int64_t label :
       {int64_t(-1), int64_t(2), std::numeric_limits<int64_t>::max(),
        std::numeric_limits<int64_t>::min()})
    EXPECT_EQ(count<float>({1, 2}, {label}, 2), (Counts{1, 0, 0})) << label;
}

TEST(Accuracy, NanIsNoPrediction) {
  EXPECT_EQ(count<float>({kNan, 2}, {0}, 2), (Counts{1, 0, 0}));
  EXPECT_EQ(count<float>({kNan, kNan, kNan}, {1}, 3), (Counts{1, 0, 0}));
  EXPECT_EQ(count<double>({kNan, -kInf}, {0}, 2), (Counts{1, 0, 0}));
}

TEST(Accuracy, Infinities) {
  EXPECT_EQ(count<float>({-kInf, kInf}, {1}, 2), (Counts{1, 1, 1}));
  EXPECT_EQ(count<float>({kInf, kInf}, {1}, 2), (Counts{1, 0, 1}));
  EXPECT_EQ(count<float>({-kInf, -kInf}, {0}, 2), (Counts{1, 1, 1}));
}

TEST(Accuracy, PlacesOfAnImage) {
  // Two samples of two classes at three places: scores [2, 2, 3].
  const std::vector<float> scores = {1, 9, 1, 2, 2, 2, 5, 5, 0, 4, 6, 0};
  EXPECT_EQ(count<float>(scores, {1, 0, 1, 0, 1, 0}, 2, 3), (Counts{6, 6, 6}));
  EXPECT_EQ(count<float>(scores, {0, 1, 0, 1, 0, 1}, 2, 3), (Counts{6, 0, 6}));
  EXPECT_EQ(count<float>(scores, {1, -100, 0, 2, 1, 0}, 2, 3),
            (Counts{5, 3, 4}));
}

} // namespace
