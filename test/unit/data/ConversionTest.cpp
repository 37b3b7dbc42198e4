//===- ConversionTest.cpp - Elements of files to those of inputs ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/data/Support.h"

#include "runtime/data/Conversion.h"

#include <limits>

using namespace partita;
using namespace partita::data;
using namespace partita::data::testing;
using partita::abi::DType;

namespace {

template <typename To, typename From>
std::vector<To> convert(DType from, DType to, const std::vector<From> &values,
                        const Scale &scale = {}, int64_t wrong = -1) {
  auto conversion = Conversion::create(from, to, scale);
  EXPECT_TRUE(conversion.ok()) << conversion.status().message();
  std::vector<To> converted(values.size());
  EXPECT_EQ(
      conversion->convert(reinterpret_cast<const uint8_t *>(values.data()),
                          reinterpret_cast<uint8_t *>(converted.data()),
                          int64_t(values.size())),
      wrong);
  return converted;
}

TEST(Conversion, scalesInTheTypeOfTheInput) {
  std::vector<uint8_t> bytes;
  for (int i = 0; i < 256; ++i)
    bytes.push_back(uint8_t(i));
  const Scale scale = {255, 0.1307, 0.3081};
  auto floats = convert<float>(DType::u8, DType::f32, bytes, scale);
  auto doubles = convert<double>(DType::u8, DType::f64, bytes, scale);
  for (int i = 0; i < 256; ++i) {
    EXPECT_EQ(floats[size_t(i)], (float(i) / 255.0f - 0.1307f) / 0.3081f);
    EXPECT_EQ(doubles[size_t(i)], (double(i) / 255.0 - 0.1307) / 0.3081);
  }
}

TEST(Conversion, takesIntegersAsTheyAre) {
  EXPECT_EQ(
      (convert<float>(DType::i8, DType::f32, std::vector<int8_t>{-128, 127})),
      (std::vector<float>{-128, 127}));
  EXPECT_EQ((convert<float>(DType::u64, DType::f32,
                            std::vector<uint64_t>{UINT64_MAX})),
            (std::vector<float>{18446744073709551616.0f}));
  EXPECT_EQ((convert<int64_t>(DType::u16, DType::i64,
                              std::vector<uint16_t>{0, 65535})),
            (std::vector<int64_t>{0, 65535}));
  EXPECT_EQ((convert<int32_t>(DType::boolean, DType::i32,
                              std::vector<uint8_t>{0, 1})),
            (std::vector<int32_t>{0, 1}));
}

TEST(Conversion, findsWhatDoesNotFit) {
  convert<int32_t>(DType::u32, DType::i32,
                   std::vector<uint32_t>{1, INT32_MAX, 1u << 31, 2}, {}, 2);
  convert<int32_t>(DType::i64, DType::i32,
                   std::vector<int64_t>{INT32_MIN, int64_t(INT32_MIN) - 1}, {},
                   1);
  convert<int64_t>(DType::u64, DType::i64, std::vector<uint64_t>{UINT64_MAX},
                   {}, 0);
}

TEST(Conversion, copiesTheSameType) {
  for (DType dtype : partita::abi::EnumValuesDType()) {
    auto same = Conversion::create(dtype, dtype, {});
    ASSERT_TRUE(same.ok());
    EXPECT_TRUE(same->isCopy());
  }
  EXPECT_EQ((convert<float>(DType::f32, DType::f32, std::vector<float>{6},
                            {2, 1, 4})),
            (std::vector<float>{0.5}));
}

TEST(Conversion, refusesAllElse) {
  expectError(Conversion::create(DType::f64, DType::f32, {}),
              "float64 cannot become float32; save the data as float32");
  for (auto [from, to] : {std::pair(DType::f32, DType::i64),
                          {DType::f32, DType::f64},
                          {DType::u8, DType::f16},
                          {DType::f16, DType::f32},
                          {DType::i64, DType::u8},
                          {DType::u8, DType::boolean}})
    expectError(Conversion::create(from, to, {}), "cannot become");
  expectError(Conversion::create(DType::u8, DType::i64, {255, 0, 1}),
              "only inputs of float32 and float64 can be scaled");
  expectError(Conversion::create(DType::f16, DType::f16, {255, 0, 1}),
              "only inputs of float32");
}

TEST(Conversion, refusesScalesThatAreNone) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (Scale scale : {Scale{0, 0, 1}, Scale{1, 0, 0}, Scale{1, infinity, 1},
                      Scale{infinity, 0, 1}, Scale{1, 0, 1e-60}})
    EXPECT_FALSE(Conversion::create(DType::u8, DType::f32, scale).ok());
  EXPECT_TRUE(Conversion::create(DType::u8, DType::f64, {1, 0, 1e-60}).ok());
}

} // namespace
