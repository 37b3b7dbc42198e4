//===- SafetensorsTest.cpp - Files of named tensors, good and broken ------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/io/Support.h"

#include "runtime/io/PendingFile.h"
#include "runtime/train/Safetensors.h"

using namespace partita;
using namespace partita::runtime;
using namespace partita::runtime::train;
using namespace partita::runtime::testing;
using partita::abi::DType;
using namespace std::string_literals;

namespace {

/// A file as its parts stand in it.
std::string file(const std::string &header, const std::string &bytes) {
  std::string text;
  for (int i = 0; i < 8; ++i)
    text += char(uint64_t(header.size()) >> (8 * i));
  return text + header + bytes;
}

Expected<Safetensors> parse(const std::string &text) {
  auto kept = std::make_shared<const std::string>(text);
  return parseSafetensors(bytesOf(*kept), kept, "'x'");
}

std::string entry(const std::string &name, const std::string &dtype,
                  const std::string &shape, const std::string &offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

/// One tensor 'w' of four bytes.
Expected<Safetensors> parseOne(const std::string &dtype,
                               const std::string &shape,
                               const std::string &offsets) {
  return parse(file("{" + entry("w", dtype, shape, offsets) + "}", "\1\2\3\4"));
}

TEST(Safetensors, readsBytesMadeByHand) {
  Expected<Safetensors> read =
      parse(file("{\"__metadata__\":{\"format\":\"pt\"}," +
                     entry("b", "U8", "[2]", "[8,10]") + "," +
                     entry("a", "F32", "[1, 2]", "[0,8]") + "}   ",
                 "\x00\x00\x80?\x00\x00\x00@\x05\x06"s));
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->tensors.size(), 2u);
  EXPECT_EQ(read->tensors[0].name, "a");
  EXPECT_EQ(read->tensors[0].tensor.typeText(), "float32 [1, 2]");
  EXPECT_EQ(valuesOf(read->tensors[0].tensor), (std::vector<double>{1, 2}));
  EXPECT_EQ(valuesOf(read->tensors[1].tensor), (std::vector<double>{5, 6}));
  EXPECT_EQ(read->metadata.at("format"), "pt");
}

TEST(Safetensors, readsScalarsAndEmptyTensors) {
  Expected<Safetensors> read =
      parse(file("{" + entry("none", "I64", "[0,3]", "[0,0]") + "," +
                     entry("s", "BF16", "[]", "[0,2]") + "}",
                 "\x80?"));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->tensors[0].tensor.elements(), 0);
  EXPECT_EQ(valuesOf(read->tensors[1].tensor), (std::vector<double>{1}));
  EXPECT_TRUE(parse(file("{}", "")).ok());
}

TEST(Safetensors, writesBytesMadeByHand) {
  const std::string floats = "\x00\x00\x80?\x00\x00\x00@"s, small = "\5\6";
  std::string written;
  auto sink = [&](std::span<const uint8_t> bytes) {
    written.append(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    return Status();
  };
  // Neither in the order of names nor in that of sizes.
  ASSERT_TRUE(writeSafetensors({{"a", DType::u8, {2}, bytesOf(small)},
                                {"b", DType::f32, {1, 2}, bytesOf(floats)}},
                               {{"k", "v"}}, sink, "'x'")
                  .ok());
  std::string header = "{\"__metadata__\":{\"k\":\"v\"}," +
                       entry("b", "F32", "[1,2]", "[0,8]") + "," +
                       entry("a", "U8", "[2]", "[8,10]") + "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(written, file(header, floats + small));
}

TEST(Safetensors, keepsEveryType) {
  const DType types[] = {DType::f64,    DType::f32, DType::f16, DType::bf16,
                         DType::i64,    DType::i32, DType::i16, DType::i8,
                         DType::u64,    DType::u32, DType::u16, DType::u8,
                         DType::boolean};
  const std::string bytes(16, '\1');
  std::vector<TensorBytes> tensors;
  for (DType type : types)
    tensors.push_back({dtypeName(type),
                       type,
                       {2},
                       bytesOf(bytes).first(size_t(2 * elementBytes(type)))});
  Folder folder;
  const std::string path = folder.file("all.safetensors");
  auto pending = PendingFile::create(path);
  ASSERT_TRUE(pending.ok());
  auto sink = [&](std::span<const uint8_t> part) {
    return (*pending)->write(part);
  };
  ASSERT_TRUE(writeSafetensors(tensors, {}, sink, "'x'").ok());
  ASSERT_TRUE((*pending)->commit().ok());
  Expected<Safetensors> read = readSafetensors(path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->tensors.size(), std::size(types));
  for (const NamedTensor &item : read->tensors) {
    EXPECT_EQ(item.name, dtypeName(item.tensor.dtype()));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(item.tensor.data()) %
                  size_t(elementBytes(item.tensor.dtype())),
              0u);
  }
}

TEST(Safetensors, refusesHeadersThatAreNone) {
  expectError(parse("\1\0\0"s), "too short");
  expectError(parse(std::string(8, '\xff')), "more than the format allows");
  expectError(parse("\x40\0\0\0\0\0\0\0{}"s), "ends within its header");
  expectError(parse(file("", "")), "no JSON");
  expectError(parse(file("{\"a\":", "")), "no JSON");
  expectError(parse(file("{\"\xff\":1}", "")), "no JSON");
  expectError(parse(file("{\"a\":1}", "")), "not an object of tensors");
  expectError(parse(file("{\"a\":[[[[[[1]]]]]]}", "")), "not an object");
  expectError(
      parse(file("{\"a\":{\"shape\":" + std::string(100000, '[') + "}}", "")),
      "tensor 'a' is not described");
}

TEST(Safetensors, refusesMetadataThatAreNoTexts) {
  expectError(parse(file("{\"__metadata__\":{\"a\":1}}", "")), "not texts");
  expectError(parse(file("{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", "")),
              "'a' is there twice");
}

TEST(Safetensors, refusesTensorsOfWrongDescription) {
  EXPECT_TRUE(parseOne("F32", "[1]", "[0,4]").ok());
  expectError(parseOne("F8_E5M2", "[4]", "[0,4]"), "convert it");
  expectError(parseOne("F32", "[-1]", "[0,4]"), "impossible numbers");
  expectError(parseOne("F32", "[1.0]", "[0,4]"), "impossible numbers");
  expectError(parseOne("F32", "[18446744073709551615]", "[0,4]"), "impossible");
  expectError(parseOne("F32", "[4294967296,4294967296]", "[0,4]"),
              "'w' of shape [4294967296, 4294967296] is too large");
  expectError(parseOne("F32", "[2]", "[0,4]"), "needs 8 bytes");
  expectError(parseOne("F32", "[1]", "[4,0]"), "needs 4 bytes");
  expectError(parseOne("F32", "[1]", "[0,4,8]"), "not described");
  expectError(parseOne("F32", "[1]", "[0]"), "not described");
  expectError(parse(file("{\"w\":{\"dtype\":\"U8\",\"shape\":[]}}", "")),
              "tensor 'w' is not described");
}

TEST(Safetensors, refusesBytesOfNoneOrTwo) {
  expectError(parseOne("F32", "[1]", "[2,6]"), "belong to no tensor");
  expectError(parseOne("U8", "[3]", "[0,3]"), "1 bytes at its end");
  expectError(parseOne("F32", "[2]", "[0,8]"), "'w' ends beyond the end");
  const std::string first = entry("v", "U8", "[3]", "[0,3]");
  expectError(
      parse(file("{" + first + "," + entry("w", "U8", "[2]", "[2,4]") + "}",
                 "abcd")),
      "'w' overlaps");
  expectError(parse(file("{" + first + "," + first + "}", "abc")),
              "'v' is there twice");
}

TEST(Safetensors, refusesToWriteWhatCannotBeRead) {
  const std::string bytes = "abcd";
  auto write = [&](std::vector<TensorBytes> tensors) {
    return writeSafetensors(
        tensors, {}, [](std::span<const uint8_t>) { return Status(); }, "'x'");
  };
  const TensorBytes good{"w", DType::f32, {1}, bytesOf(bytes)};
  EXPECT_TRUE(write({good}).ok());
  expectError(write({good, good}), "two tensors are called 'w'");
  for (const char *name : {"", "__metadata__", "\xff"})
    expectError(write({{name, DType::f32, {1}, bytesOf(bytes)}}),
                "needs another name");
  expectError(write({{"w", DType::f32, {2}, bytesOf(bytes)}}), "does not have");
  expectError(write({{"w", DType::i4, {4}, bytesOf(bytes)}}), "convert it");
}

} // namespace
