//===- IdxTest.cpp - IDX files, good and hostile --------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/data/Support.h"

#include "runtime/data/Formats.h"

#include <zlib.h>

using namespace partita;
using namespace partita::data;
using namespace partita::data::testing;
using partita::abi::DType;

namespace {

std::string idx(uint8_t type, const std::vector<uint32_t> &dims,
                const std::string &elements) {
  std::string bytes = {0, 0, char(type), char(dims.size())};
  for (uint32_t dim : dims)
    for (int shift = 24; shift >= 0; shift -= 8)
      bytes += char(dim >> shift);
  return bytes + elements;
}

std::string gzip(const std::string &text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8,
                         Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string packed(deflateBound(&stream, uLong(text.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(text.data()));
  stream.avail_in = uInt(text.size());
  stream.next_out = reinterpret_cast<Bytef *>(packed.data());
  stream.avail_out = uInt(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

runtime::Expected<DatasetPointer> datasetOf(const std::string &bytes) {
  return parseIdx(bytesOf(bytes), nullptr, "'x'");
}
runtime::Expected<DatasetPointer> parsePacked(const std::string &bytes) {
  return parseGzippedIdx(bytesOf(bytes), "'x.gz'");
}

TEST(Idx, readsBytes) {
  std::string bytes = idx(8, {3, 1, 2}, "abcdef");
  auto dataset = datasetOf(bytes);
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->count(), 3);
  EXPECT_EQ((*dataset)->dtype(), DType::u8);
  EXPECT_EQ((*dataset)->sampleShape(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ((*dataset)->sampleBytes(), 2);
  EXPECT_EQ(elementsOf<char>(**dataset, 1, 2),
            (std::vector<char>{'c', 'd', 'e', 'f'}));
}

TEST(Idx, copiesSamplesInAnyOrder) {
  std::string bytes = idx(8, {3, 2}, "abcdef");
  auto dataset = datasetOf(bytes);
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  std::string copied(6, '\0');
  auto *to = reinterpret_cast<uint8_t *>(copied.data());
  for (int i = 0; const int64_t index : {2, 0, 2})
    (*dataset)->copySample(index, to + 2 * i++);
  EXPECT_EQ(copied, "efabef");
  expectError((*dataset)->read(0, 4, to), "'x' has no sample 3");
  expectError((*dataset)->read(-1, 1, to), "no sample -1");
  expectError((*dataset)->read(2, 2, to), "no sample 3");
  expectError((*dataset)->read(0, INT64_MAX, to), "it has 3");
  expectError((*dataset)->read(0, -1, to), "cannot read -1 samples");
  EXPECT_TRUE((*dataset)->read(3, 0, to).ok());
}

TEST(Idx, turnsBigEndianElements) {
  std::string shorts = idx(0x0b, {2}, std::string("\x01\x02\xff\xfe", 4));
  EXPECT_EQ(allOf<int16_t>(**datasetOf(shorts)),
            (std::vector<int16_t>{0x0102, -2}));
  std::string ints = idx(0x0c, {1, 1}, std::string("\x01\x02\x03\x04", 4));
  EXPECT_EQ(allOf<int32_t>(**datasetOf(ints)),
            (std::vector<int32_t>{0x01020304}));
  std::string floats = idx(0x0d, {1}, std::string("\x3f\xc0\0\0", 4));
  EXPECT_EQ(allOf<float>(**datasetOf(floats)), (std::vector<float>{1.5}));
  std::string doubles = idx(0x0e, {1}, std::string("\xbf\xf8\0\0\0\0\0\0", 8));
  EXPECT_EQ(allOf<double>(**datasetOf(doubles)), (std::vector<double>{-1.5}));
  std::string signedBytes = idx(9, {1}, "\xff");
  EXPECT_EQ(allOf<int8_t>(**datasetOf(signedBytes)), (std::vector<int8_t>{-1}));
}

TEST(Idx, readsNoneAndOne) {
  std::string none = idx(8, {0, 28, 28}, "");
  auto dataset = datasetOf(none);
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->count(), 0);
  EXPECT_EQ((*dataset)->sampleElements(), 784);
  auto packed = parsePacked(gzip(none));
  ASSERT_TRUE(packed.ok()) << packed.status().message();
  EXPECT_EQ((*packed)->count(), 0);

  std::string one = idx(8, {1}, "a");
  EXPECT_EQ(allOf<char>(**datasetOf(one)), (std::vector<char>{'a'}));
  // Many samples of nothing.
  std::string empty = idx(8, {0xffffffff, 0}, "");
  ASSERT_TRUE(datasetOf(empty).ok());
  EXPECT_EQ((*datasetOf(empty))->count(), 0xffffffff);
  EXPECT_EQ((*datasetOf(empty))->sampleBytes(), 0);
}

TEST(Idx, refusesTruncatedFiles) {
  const std::string whole = idx(8, {3, 1, 2}, "abcdef");
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(datasetOf(whole.substr(0, size)).ok()) << size;
  expectError(datasetOf(whole.substr(0, 10)), "it ends within its header");
  expectError(datasetOf(whole.substr(0, 20)),
              "its header says uint8 [3, 1, 2], that is 6 bytes, but 4 bytes "
              "follow");
  expectError(datasetOf(whole + "g"), "but 7 bytes follow");
}

TEST(Idx, refusesHostileHeaders) {
  expectError(datasetOf("\x01"), "it is not an IDX file");
  expectError(datasetOf(idx(7, {1}, "a")), "element type 7 is not one of IDX");
  expectError(datasetOf(idx(8, {}, "")), "it has no dimensions");
  expectError(datasetOf(idx(8, {0xffffffff, 0xffffffff}, "a")),
              "too large for any file");
  expectError(datasetOf(idx(8, std::vector<uint32_t>(255, 0xffffffff), "a")),
              "too large for any file");
  expectError(datasetOf(idx(8, {0xffffffff, 0x10000000}, "a")), "but 1 bytes");
}

TEST(Idx, decompresses) {
  std::string elements(70000, '\0');
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = char(i * i >> 3);
  auto dataset = parsePacked(gzip(idx(8, {100, 700}, elements)));
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  std::vector<char> all = allOf<char>(**dataset);
  EXPECT_EQ(std::string(all.begin(), all.end()), elements);
}

TEST(Idx, refusesBrokenCompression) {
  const std::string whole = gzip(idx(8, {3, 1, 2}, "abcdef"));
  for (size_t size = 0; size < whole.size(); ++size)
    expectError(parsePacked(whole.substr(0, size)), "it ends early");
  expectError(parsePacked(whole + "x"), "something follows");
  expectError(parsePacked(gzip(idx(8, {3}, "abcd"))), "more bytes than");
  expectError(parsePacked(gzip(idx(8, {3}, "ab"))), "it ends early");
  expectError(parsePacked(gzip("nothing of the kind")),
              "decompressed, it is not an IDX file");
  std::string damaged = whole;
  damaged[damaged.size() - 6] ^= 1; // of the sum
  expectError(parsePacked(damaged), "damaged");
}

TEST(Idx, takesNoMemoryForWhatCannotBe) {
  expectError(parsePacked(gzip(idx(8, {0xffffffff, 0x1000}, "a"))),
              "compressed bytes cannot hold");
}

} // namespace
