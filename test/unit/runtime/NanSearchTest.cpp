//===- NanSearchTest.cpp - Which instruction made NaN ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernels of these tests double numbers. So they make infinities of large
// ones, and no NaN.
//
//===----------------------------------------------------------------------===//

#include "runtime/session/NanSearch.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/base/Elements.h"
#include "test/unit/runtime/Pipelines.h"
#include "test/unit/runtime/TestedDevices.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

namespace partita::test {
namespace {

using namespace partita::runtime;

/// Some bits in the last of many elements, at an address that is not aligned.
std::optional<int64_t> find(Search search, abi::DType type, uint64_t bits,
                            int64_t count) {
  const auto bytes = static_cast<size_t>(elementBytes(type));
  std::vector<uint8_t> data(1 + bytes * static_cast<size_t>(count));
  std::memcpy(data.data() + data.size() - bytes, &bits, bytes);
  return findFirst(search, type, data.data() + 1, count);
}

TEST(NotFinite, IsFoundInEveryType) {
  struct Case {
    abi::DType type;
    uint64_t nan, negative, infinity, largest;
  };
  const Case cases[] = {
      {abi::DType::f64, 0x7FF0000000000001, 0xFFF8000000000000,
       0x7FF0000000000000, 0xFFEFFFFFFFFFFFFF},
      {abi::DType::f32, 0x7F800001, 0xFFC00000, 0xFF800000, 0x7F7FFFFF},
      {abi::DType::f16, 0x7C01, 0xFE00, 0xFC00, 0xFBFF},
      {abi::DType::bf16, 0x7F81, 0xFFC0, 0x7F80, 0x7F7F},
      {abi::DType::f8e5m2, 0x7D, 0xFF, 0x7C, 0xFB},
      {abi::DType::f8e4m3fn, 0x7F, 0xFF, 0, 0x7E},
      {abi::DType::f8e4m3fnuz, 0x80, 0x80, 0, 0xFF},
      {abi::DType::f8e5m2fnuz, 0x80, 0x80, 0, 0xFF},
      {abi::DType::f8e8m0, 0xFF, 0xFF, 0, 0xFE},
  };
  for (const Case &each : cases) {
    SCOPED_TRACE(abi::EnumNameDType(each.type));
    EXPECT_TRUE(hasNan(each.type));
    for (int64_t count : {1, 1023, 1024, 1025, 5000}) {
      for (Search search : {Search::nan, Search::not_finite}) {
        EXPECT_EQ(find(search, each.type, each.nan, count), count - 1);
        EXPECT_EQ(find(search, each.type, each.negative, count), count - 1);
        EXPECT_FALSE(find(search, each.type, each.largest, count));
      }
      EXPECT_FALSE(find(Search::nan, each.type, each.infinity, count));
      EXPECT_EQ(
          find(Search::not_finite, each.type, each.infinity, count).has_value(),
          each.infinity != 0);
      EXPECT_FALSE(find(Search::none, each.type, each.nan, count));
    }
    EXPECT_FALSE(findFirst(Search::nan, each.type, nullptr, 0));
  }
  EXPECT_FALSE(hasNan(abi::DType::i32));
  EXPECT_FALSE(find(Search::nan, abi::DType::i32, 0xFFFFFFFF, 3));
}

class NanSearches : public ::testing::Test {
protected:
  static constexpr int kDevices = 3, kBatches = 4;
  static constexpr int64_t kCount = 16;

  void SetUp() override {
    const std::string path = temporary("search.partita");
    writeArtifact(path, doublingPipeline(kDevices, kBatches, kCount, true),
                  testObjects());
    artifact = *Artifact::open(path);
    ::unlink(path.c_str());
    if (!canBeSearched(artifact->plan(), 0))
      GTEST_SKIP() << "the device does not show its memory";
  }

  /// The origins of a step of ones, in which some micro-batches have another
  /// number.
  std::vector<NanOrigin> run(Search search,
                             const std::vector<std::pair<int, float>> &given) {
    SessionOptions options;
    options.pin = false;
    options.timeout_s = 20;
    options.search = search;
    auto session = createSession(artifact, options);
    EXPECT_TRUE(session.ok()) << session.status().message();
    std::vector<float> x(kBatches * kCount, 1), y(x.size());
    StepBinding binding;
    binding.micro_batches = kBatches;
    binding.inputs = {reinterpret_cast<const uint8_t *>(x.data())};
    binding.outputs = {reinterpret_cast<uint8_t *>(y.data())};
    EXPECT_TRUE((*session)->run(binding).ok()); // nothing is found yet
    EXPECT_TRUE((*session)->nanOrigins().empty());
    for (auto [micro_batch, value] : given)
      x[static_cast<size_t>(micro_batch * kCount + 5)] = value;
    EXPECT_TRUE((*session)->run(binding).ok());
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_TRUE(y[i] == 8 * x[i] || std::isnan(x[i])) << "element " << i;
    return (*session)->nanOrigins();
  }

  std::shared_ptr<const Artifact> artifact;
};

TEST_F(NanSearches, NameTheFirstInstructionOfAMicroBatch) {
  // Twice 1e38 is a number; four times is not.
  const std::vector<NanOrigin> found =
      run(Search::not_finite, {{1, 1e38f}, {3, 3e38f}});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].micro_batch, 1);
  EXPECT_EQ(found[0].device, 1);
  EXPECT_EQ(found[0].stage, 1);
  EXPECT_EQ(found[0].instruction, 0);
  EXPECT_EQ(describe(artifact->plan(), found[0]).substr(0, 12), "'double1' on");
  EXPECT_EQ(found[1].micro_batch, 3);
  EXPECT_EQ(found[1].device, 0);
}

TEST_F(NanSearches, DoNotBlameWhoReadsIt) {
  EXPECT_TRUE(run(Search::nan, {{1, NAN}, {2, 3e38f}}).empty());
  EXPECT_TRUE(run(Search::not_finite, {{2, INFINITY}, {3, NAN}}).empty());
}

TEST_F(NanSearches, AreOnlyMadeIfSomebodyAsks) {
  EXPECT_TRUE(run(Search::none, {{1, 3e38f}}).empty());
}

} // namespace
} // namespace partita::test
