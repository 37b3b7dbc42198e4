//===- TokensTest.cpp - Windows of tokens ---------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/data/Support.h"

#include "runtime/data/Formats.h"

using namespace partita;
using namespace partita::data;
using namespace partita::data::testing;
using partita::abi::DType;

namespace {

using Words = std::vector<uint16_t>;

Words count(uint16_t tokens) {
  Words words;
  for (uint16_t i = 0; i < tokens; ++i)
    words.push_back(i);
  return words;
}

runtime::Expected<DatasetPointer> parse(const Words &words,
                                        TokenOptions options) {
  return parseTokens({reinterpret_cast<const uint8_t *>(words.data()),
                      words.size() * sizeof(uint16_t)},
                     nullptr, options, "'x.bin'");
}

TEST(Tokens, areWindowsOneAfterAnother) {
  const Words words = count(10);
  auto inputs = parse(words, {.window = 3, .stride = 3});
  auto targets = parse(words, {.window = 3, .stride = 3, .targets = true});
  ASSERT_TRUE(inputs.ok()) << inputs.status().message();
  ASSERT_TRUE(targets.ok()) << targets.status().message();
  EXPECT_EQ((*inputs)->sampleShape(), (std::vector<int64_t>{3}));
  EXPECT_EQ(allOf<uint16_t>(**inputs), (Words{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(allOf<uint16_t>(**targets), (Words{1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Tokens, leaveOutWhatHasNoTarget) {
  const Words words = count(9);
  EXPECT_EQ(allOf<uint16_t>(**parse(words, {.window = 3, .stride = 3})),
            (Words{0, 1, 2, 3, 4, 5}));
}

TEST(Tokens, areWindowsAtEveryPosition) {
  const Words words = count(5);
  auto inputs = parse(words, {.window = 2, .stride = 1});
  auto targets = parse(words, {.window = 2, .stride = 1, .targets = true});
  EXPECT_EQ(allOf<uint16_t>(**inputs), (Words{0, 1, 1, 2, 2, 3}));
  EXPECT_EQ(allOf<uint16_t>(**targets), (Words{1, 2, 2, 3, 3, 4}));
}

TEST(Tokens, mayBeWide) {
  const std::vector<uint32_t> words = {70000, 1, 2, 80000};
  auto inputs = parseTokens(
      {reinterpret_cast<const uint8_t *>(words.data()), 16}, nullptr,
      {.dtype = DType::u32, .window = 3, .stride = 3, .targets = true}, "'x'");
  ASSERT_TRUE(inputs.ok()) << inputs.status().message();
  EXPECT_EQ(allOf<uint32_t>(**inputs), (std::vector<uint32_t>{1, 2, 80000}));
}

TEST(Tokens, mayBeTooFewForASample) {
  for (uint16_t tokens : {0, 1, 3}) {
    auto none = parse(count(tokens), {.window = 3, .stride = 3});
    ASSERT_TRUE(none.ok()) << none.status().message();
    EXPECT_EQ((*none)->count(), 0);
  }
  EXPECT_EQ((*parse(count(4), {.window = 3, .stride = 3}))->count(), 1);
  EXPECT_EQ((*parse(count(2), {.window = 1, .stride = 1}))->count(), 1);
  EXPECT_EQ((*parse(count(9), {.window = 3, .stride = INT64_MAX}))->count(), 1);
}

TEST(Tokens, refuseWhatCannotBe) {
  const Words words = count(3);
  expectError(parse(words, {.window = 0, .stride = 1}), "e.g. window=256");
  expectError(parse(words, {.window = 1, .stride = 0}), "stride");
  expectError(parse(words, {.window = INT64_MAX, .stride = 1}), "too large");
  expectError(parse(words, {.dtype = DType::i64, .window = 1, .stride = 1}),
              "tokens are u16 or u32, not i64");
  expectError(parse(words, {.dtype = DType::u32, .window = 1, .stride = 1}),
              "its 6 bytes are not a whole number of tokens of 4 bytes");
}

} // namespace
