//===- DimExpressionTest.cpp - Dimensions that depend on others -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/model/DimExpression.h"

#include <gtest/gtest.h>

#include <map>

using namespace partita::import;

namespace {

std::optional<int64_t> evaluate(llvm::StringRef text) {
  const std::map<std::string, int64_t> sizes = {
      {"past", 7}, {"words", 2}, {"s0", 5}, {"huge", int64_t(1) << 62}};
  return evaluateDim(text, [&](llvm::StringRef name) {
    auto found = sizes.find(name.str());
    return found == sizes.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(DimExpression, Evaluates) {
  EXPECT_EQ(evaluate("past + words"), 9);
  EXPECT_EQ(evaluate("past+words"), 9);
  EXPECT_EQ(evaluate("2*s0"), 10);
  EXPECT_EQ(evaluate("s0 - 1"), 4);
  EXPECT_EQ(evaluate("-s0 + past"), 2);
  EXPECT_EQ(evaluate("past - words - 1"), 4);
  EXPECT_EQ(evaluate("(s0 - 1)//2 + 1"), 3);
  EXPECT_EQ(evaluate("(words - past)//2 + past"), 4); // -3: downwards
  EXPECT_EQ(evaluate("s0*words / 5 % 3"), 2);
  EXPECT_EQ(evaluate("2*(past + (words))"), 18);
}

TEST(DimExpression, HasNoValue) {
  EXPECT_EQ(evaluate("past + other"), std::nullopt); // not known
  EXPECT_EQ(evaluate("words - past"), std::nullopt); // negative
  EXPECT_EQ(evaluate("past / words"), std::nullopt); // not exact
  EXPECT_EQ(evaluate("past // (words - 2)"), std::nullopt);
  EXPECT_EQ(evaluate("past % 0"), std::nullopt);
  EXPECT_EQ(evaluate("huge * 2"), std::nullopt);
  EXPECT_EQ(evaluate("huge + huge"), std::nullopt);
}

TEST(DimExpression, TellsNamesFromExpressions) {
  using Names = llvm::SmallVector<llvm::StringRef>;
  EXPECT_EQ(findDimNames("past + words + past"), (Names{"past", "words"}));
  EXPECT_EQ(findDimNames("batch-size"), (Names{"batch", "size"}));
  for (const char *text :
       {"", "past", "7", "3 + 4", "past +", "+ past", "(past", "past)",
        "past words", "past ** 2", "Max(past, words)", "pa$t + 1", "7past + 1",
        "99999999999999999999*past", "()", "past + ()", "unk__1"})
    EXPECT_EQ(findDimNames(text), Names()) << text;
  // What nobody writes ends before the stack does.
  const std::string deep(100000, '('), minus(100000, '-');
  EXPECT_EQ(findDimNames(deep + "a + b"), Names());
  EXPECT_EQ(findDimNames(minus + "a + b"), Names());
}

} // namespace
