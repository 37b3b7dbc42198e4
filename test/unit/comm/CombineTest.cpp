//===- CombineTest.cpp - Elements combined by all kinds of processors -----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/reduce/CombineRows.h"
#include "runtime/comm/reduce/Group.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

namespace partita::test {
namespace {

using namespace partita::runtime;
using Bytes = std::vector<uint8_t>;
using Functions = CombineFunctions (*)(ElementFormat);

/// The levels that this processor has, besides the first.
std::vector<Functions> higherLevels() {
  std::vector<Functions> levels;
  if (__builtin_cpu_supports("x86-64-v3"))
    levels.push_back(combineFunctionsV3);
  if (__builtin_cpu_supports("x86-64-v4"))
    levels.push_back(combineFunctionsV4);
  return levels;
}

Bytes combined(CombineFunction function, const std::vector<Bytes> &sources,
               size_t element) {
  Bytes result(sources[0].size());
  std::vector<const uint8_t *> from;
  for (const Bytes &source : sources)
    from.push_back(source.data());
  uint8_t *to = result.data();
  function({from.data(), int(from.size()), &to, 1,
            int64_t(result.size() / element)});
  return result;
}

size_t bytesOf(ElementFormat format) {
  switch (format) {
  case ElementFormat::f64:
  case ElementFormat::i64:
  case ElementFormat::u64:
    return 8;
  case ElementFormat::f32:
  case ElementFormat::i32:
  case ElementFormat::u32:
    return 4;
  case ElementFormat::f16:
  case ElementFormat::bf16:
  case ElementFormat::i16:
  case ElementFormat::u16:
    return 2;
  default:
    return 1;
  }
}

// Of any bits: signalling NaN, denormals, infinities. Two NaN may give either,
// so the second and third sources are finite where they are floats of 16 bits.
TEST(Combine, GivesTheSameBitsAtAllLevels) {
  for (int f = 0; f <= int(ElementFormat::u2); ++f) {
    const auto format = ElementFormat(f);
    const size_t element = bytesOf(format), count = 65536 + 77;
    std::mt19937 random(static_cast<unsigned>(f));
    std::vector<Bytes> sources(3, Bytes(count * element));
    for (size_t s = 0; s < 3; ++s)
      for (size_t i = 0; i < count; ++i) {
        uint64_t bits = uint64_t(random()) << 32 | random();
        if (element == 2 && s == 0)
          bits = i; // every one
        else if (format <= ElementFormat::bf16 && s > 0)
          // The upper bit of the exponent, so that none is NaN.
          bits &= ~(uint64_t(1) << (element * 8 - 2));
        std::memcpy(&sources[s][i * element], &bits, element);
      }
    const CombineFunctions baseline = combineFunctionsBaseline(format);
    for (Functions level : higherLevels()) {
      const CombineFunctions here = level(format);
      for (auto member : {&CombineFunctions::sum, &CombineFunctions::prod,
                          &CombineFunctions::max, &CombineFunctions::min}) {
        ASSERT_EQ(baseline.*member == nullptr, here.*member == nullptr);
        if (baseline.*member)
          EXPECT_EQ(combined(baseline.*member, sources, element),
                    combined(here.*member, sources, element))
              << "format " << f;
      }
    }
  }
}

// Large targets are written past the caches, unless they are sources.
TEST(Combine, GivesTheSameBitsPastTheCaches) {
  const size_t count = (4 << 20) + 77; // not a whole block at the end
  std::vector<Bytes> sources(2, Bytes(count * 2));
  std::mt19937 random(1);
  for (Bytes &source : sources)
    for (size_t i = 0; i < source.size(); i += 2)
      source[i] = uint8_t(random()), source[i + 1] = 0x3c;
  std::vector<Functions> levels = higherLevels();
  levels.push_back(combineFunctionsBaseline);
  for (Functions level : levels) {
    const CombineFunction sum = level(ElementFormat::f16).sum;
    const Bytes apart = combined(sum, sources, 2);
    Bytes inPlace = sources[0];
    const uint8_t *from[] = {inPlace.data(), sources[1].data()};
    uint8_t *to[] = {inPlace.data()};
    sum({from, 2, to, 1, int64_t(count)});
    EXPECT_EQ(apart, inPlace);
  }
}

// A comparison that raises the processor's flag would say that NaN was lost.
TEST(Combine, LeavesTheFlagForInvalidOperationsAlone) {
  const float values[] = {NAN, 1, -1, NAN};
  std::vector<Bytes> sources(2, Bytes(16));
  std::memcpy(sources[0].data(), values, 16);
  std::memcpy(sources[1].data(), values + 1, 12);
  std::vector<Functions> levels = higherLevels();
  levels.push_back(combineFunctionsBaseline);
  for (Functions level : levels)
    for (CombineFunction function :
         {level(ElementFormat::f32).sum, level(ElementFormat::f32).max,
          level(ElementFormat::f32).min}) {
      __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() & ~1u);
      (void)combined(function, sources, 4);
      EXPECT_EQ(__builtin_ia32_stmxcsr() & 1, 0u);
    }
}

TEST(Combine, SharesCoverATensorInLines) {
  for (int64_t count : {0, 1, 16, 17, 1000, 99991})
    for (int size : {1, 2, 3, 8}) {
      CollectiveInfo info;
      info.part = count;
      int64_t next = 0;
      for (int rank = 0; rank < size; ++rank) {
        auto [begin, end] = shareOf(info, rank, size);
        EXPECT_EQ(begin, next);
        EXPECT_LE(begin, end);
        EXPECT_TRUE(begin % 64 == 0 || begin == 4 * count);
        EXPECT_LE(end - begin, (4 * count + 63) / 64 / size * 64 + 64);
        next = end;
      }
      EXPECT_EQ(next, 4 * count);
    }
}

} // namespace
} // namespace partita::test
