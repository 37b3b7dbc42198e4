//===- TensorProtoFileTest.cpp - TensorProto files, good and broken -------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support.h"
#include "WriteTensorProto.h"

#include "runtime/io/TensorProtoFile.h"

using namespace partita;
using namespace partita::runtime;
using namespace partita::runtime::testing;
using partita::abi::DType;
using namespace std::string_literals;

namespace {

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7)
    bytes += char(value | 128);
  return bytes + char(value);
}
/// A field of protobuf's wire format that holds a number.
std::string number(int field, uint64_t value) {
  return varint(uint64_t(field) << 3) + varint(value);
}
/// One that holds bytes (raw data, or a packed repeated field).
std::string bytes(int field, const std::string &value) {
  return varint(uint64_t(field) << 3 | 2) + varint(value.size()) + value;
}

Expected<NamedTensor> parseProto(const std::string &file) {
  return parseTensorProto(bytesOf(file), "x");
}

void expectValues(const std::string &file, const std::string &type,
                  const std::vector<double> &values) {
  Expected<NamedTensor> item = parseProto(file);
  ASSERT_TRUE(item.ok()) << item.status().message();
  EXPECT_EQ(item->tensor.typeText(), type);
  EXPECT_EQ(valuesOf(item->tensor), values);
}

const std::string kFloats = number(1, 2) + number(2, 1) + bytes(8, "logits") +
                            bytes(9, "\0\0\x80?\0\0\0@"s);

TEST(TensorProto, rawData) {
  expectValues(kFloats, "float32 [2]", {1, 2});
  EXPECT_EQ(parseProto(kFloats)->name, "logits");
}

TEST(TensorProto, typedFields) {
  expectValues(number(1, 2) + number(2, 1) + bytes(4, "\0\0\x80?\0\0\0@"s),
               "float32 [2]", {1, 2});
  expectValues(number(1, 2) + number(2, 7) +
                   bytes(7, varint(5) + varint(~uint64_t(0))),
               "int64 [2]", {5, -1});
  expectValues(number(1, 2) + number(2, 3) +
                   bytes(5, varint(5) + varint(~uint64_t(0))),
               "int8 [2]", {5, -1});
  expectValues(number(1, 1) + number(2, 10) + bytes(5, varint(0x3C00)),
               "float16 [1]", {1});
  expectValues(number(1, 1) + number(2, 12) + bytes(11, varint(4294967295u)),
               "uint32 [1]", {4294967295.0});
  expectValues(number(1, 3) + number(2, 9) +
                   bytes(5, varint(1) + varint(0) + varint(1)),
               "bool [3]", {1, 0, 1});
  // Unpacked repeated fields, as old writers leave them.
  expectValues(number(1, 2) + number(2, 6) + number(5, 3) + number(5, 4),
               "int32 [2]", {3, 4});
}

TEST(TensorProto, unpacksNarrowTypes) {
  expectValues(number(1, 3) + number(2, 22) + bytes(9, "\x87\x0f"), "int4 [3]",
               {7, -8, -1});
  expectValues(number(1, 3) + number(2, 21) + bytes(9, "\x87\x0f"), "uint4 [3]",
               {7, 8, 15});
  expectValues(number(1, 3) + number(2, 22) +
                   bytes(5, varint(0x87) + varint(0x0f)),
               "int4 [3]", {7, -8, -1});
  expectValues(number(1, 5) + number(2, 26) + bytes(9, "\xe4\x01"), "int2 [5]",
               {0, 1, -2, -1, 1});
  expectValues(number(1, 5) + number(2, 25) + bytes(9, "\xe4\x01"), "uint2 [5]",
               {0, 1, 2, 3, 1});
  expectValues(number(1, 2) + number(2, 23) + bytes(9, "\xf1"),
               "float4_e2m1fn [2]", {0.5, -6});
}

TEST(TensorProto, smallFloats) {
  expectValues(number(1, 3) + number(2, 17) + bytes(9, "\x38\xb8\x7e"),
               "float8_e4m3fn [3]", {1, -1, 448});
  expectValues(number(1, 2) + number(2, 19) + bytes(9, "\x3c\x7b"),
               "float8_e5m2 [2]", {1, 57344});
  expectValues(number(1, 2) + number(2, 18) + bytes(9, "\x40\x7f"),
               "float8_e4m3fnuz [2]", {1, 240});
  expectValues(number(1, 2) + number(2, 16) + bytes(9, "\x80\x3f\x00\xc0"s),
               "bfloat16 [2]", {1, -2});
  expectValues(number(1, 2) + number(2, 24) + bytes(9, "\x7f\x80"),
               "float8_e8m0fnu [2]", {1, 2});
}

TEST(TensorProto, everyTypeComesBack) {
  Folder folder;
  for (DType dtype : partita::abi::EnumValuesDType()) {
    Expected<Tensor> tensor = Tensor::allocate(dtype, {7});
    ASSERT_TRUE(tensor.ok());
    for (int64_t i = 0; i < tensor->bytes(); ++i)
      tensor->mutableData()[i] = uint8_t(i % 2);
    const std::string path = folder.file("t.pb");
    ASSERT_TRUE(writeTensorProto(path, {"t", *tensor}).ok());
    Expected<NamedTensor> back = readTensorProto(path);
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(back->tensor.typeText(), tensor->typeText());
    EXPECT_EQ(valuesOf(back->tensor), valuesOf(*tensor));
  }
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(TensorProto, refusesByName) {
  expectError(parseProto(""), "empty");
  expectError(parseProto("not a protobuf"), "not a TensorProto");
  expectError(parseProto(number(1, 1)), "no element type");
  expectError(parseProto(number(2, 8) + bytes(6, "text")), "strings");
  expectError(parseProto(number(2, 14)), "complex");
  expectError(parseProto(number(2, 99)), "number 99");
  expectError(parseProto(number(1, 1) + number(2, 1) + number(14, 1)),
              "another file");
  // A SequenceProto of one tensor, and an empty one.
  expectError(parseProto(number(2, 1) + bytes(3, kFloats)), "SequenceProto");
  expectError(parseProto(number(2, 1)), "SequenceProto");
}

TEST(TensorProto, refusesSizesThatDoNotMatch) {
  const std::string data = bytes(9, "\0\0\0\0"s);
  EXPECT_TRUE(parseProto(number(1, 1) + number(2, 1) + data).ok());
  expectError(parseProto(number(1, 2) + number(2, 1) + data),
              "needs 8 bytes, but holds 4");
  expectError(parseProto(number(1, 0) + number(2, 1) + data),
              "needs 0 bytes, but holds 4");
  expectError(parseProto(number(1, uint64_t(-1)) + number(2, 1) + data),
              "impossible");
  expectError(parseProto(number(1, uint64_t(1) << 40) + number(2, 1) + data),
              "more elements");
  expectError(parseProto(number(1, uint64_t(1) << 40) +
                         number(1, uint64_t(1) << 40) + number(2, 1) + data),
              "impossible");
  expectError(parseProto(number(1, 3) + number(2, 22) + bytes(9, "\x11")),
              "needs 2 bytes, but holds 1");
}

TEST(TensorProto, truncatedAnywhereIsAnError) {
  for (size_t size = 0; size < kFloats.size(); ++size)
    EXPECT_FALSE(parseProto(kFloats.substr(0, size)).ok()) << size;
}

TEST(TensorProto, changedAnywhereNeverCrashes) {
  for (size_t at = 0; at < kFloats.size(); ++at)
    for (int change = 1; change < 256; ++change) {
      std::string file = kFloats;
      file[at] = char(file[at] ^ change);
      Expected<NamedTensor> item = parseProto(file);
      if (item.ok()) {
        EXPECT_EQ(valuesOf(item->tensor).size(),
                  size_t(item->tensor.elements()));
      }
    }
}

TEST(SequenceProto, elementsInOrder) {
  Folder folder;
  const std::string other = number(1, 1) + number(2, 7) + bytes(7, varint(9));
  auto read = [&](const std::string &file) {
    return readSequenceProto(folder.write("s.pb", file));
  };
  auto tensors =
      read(bytes(1, "x") + number(2, 1) + bytes(3, kFloats) + bytes(3, other));
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  ASSERT_EQ(tensors->size(), 2u);
  EXPECT_EQ((*tensors)[0].typeText(), "float32 [2]");
  EXPECT_EQ(valuesOf((*tensors)[1]), std::vector<double>{9});
  // A sequence without elements may be a file without bytes.
  auto none = read("");
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_TRUE(none->empty());
  expectError(read(kFloats), "is it a TensorProto?");
  expectError(read(number(2, 3) + bytes(5, number(2, 1))), "no tensors");
  expectError(read(bytes(3, number(2, 8))), "element 0: it holds strings");
  expectError(read(bytes(3, kFloats).substr(0, 9)), "not a SequenceProto");
  expectError(readSequenceProto(folder.file("absent.pb")), "absent.pb");
}

TEST(OptionalProto, aValueOrNone) {
  Folder folder;
  auto read = [&](const std::string &file) {
    return readOptionalProto(folder.write("o.pb", file));
  };
  auto size = [&](const std::string &file) {
    auto value = read(file);
    EXPECT_TRUE(value.ok()) << value.status().message();
    return !value.ok() ? -2 : *value ? int((*value)->size()) : -1;
  };
  EXPECT_EQ(size(number(2, 0)), -1);
  EXPECT_EQ(size(""), -1);
  EXPECT_EQ(size(bytes(1, "o") + number(2, 1) + bytes(3, kFloats)), 1);
  EXPECT_EQ(
      size(number(2, 3) + bytes(5, bytes(3, kFloats) + bytes(3, kFloats))), 2);
  EXPECT_EQ(size(number(2, 3)), 0);
  expectError(read(kFloats), "is it a TensorProto?");
  expectError(read(bytes(6, "")), "neither a tensor nor a sequence");
}

} // namespace
