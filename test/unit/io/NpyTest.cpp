//===- NpyTest.cpp - .npy files, good, foreign and broken -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support.h"

#include "runtime/io/Npy.h"

using namespace partita;
using namespace partita::runtime;
using namespace partita::runtime::testing;
using partita::abi::DType;
using namespace std::string_literals;

namespace {

/// As numpy.save writes it: the header padded to a multiple of 64.
std::string numpyFile(const std::string &dictionary, const std::string &data,
                      int version = 1) {
  const size_t fixed = version == 1 ? 10 : 12;
  std::string text = dictionary;
  text.resize((fixed + text.size() + 1 + 63) / 64 * 64 - fixed - 1, ' ');
  text += '\n';
  std::string file = "\x93NUMPY"s + char(version) + '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    file += char(text.size() >> (8 * i));
  return file + text + data;
}

Expected<Tensor> parse(const std::string &file,
                       std::optional<DType> expected = std::nullopt) {
  // The tensor refers to the bytes, so they must outlive the caller's string.
  auto kept = std::make_shared<const std::string>(file);
  return parseNpy(bytesOf(*kept), kept, "x", expected);
}

const std::string kMatrix =
    numpyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
              "\x00\x00\x80?\x00\x00\x00@\x00\x00@@"
              "\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@"s);

TEST(Npy, readsFloats) {
  Expected<Tensor> tensor = parse(kMatrix);
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ(tensor->typeText(), "float32 [2, 3]");
  EXPECT_EQ(valuesOf(*tensor), (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(Npy, readsFortranOrder) {
  Expected<Tensor> tensor = parse(
      numpyFile("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
                "\x00\x00\x00\x00\x00\x00@@\x00\x00\x80?"
                "\x00\x00\x80@\x00\x00\x00@\x00\x00\xa0@"s));
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ(valuesOf(*tensor), (std::vector<double>{0, 1, 2, 3, 4, 5}));
}

TEST(Npy, readsBigEndian) {
  Expected<Tensor> tensor = parse(
      numpyFile("{'descr': '>i4', 'fortran_order': False, 'shape': (3,), }",
                "\x00\x00\x00\x00\x00\x00\x00\x01\xff\xff\xff\xfe"s));
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ(valuesOf(*tensor), (std::vector<double>{0, 1, -2}));
}

TEST(Npy, readsVersion3Scalar) {
  Expected<Tensor> tensor =
      parse(numpyFile("{'descr': '<i8', 'fortran_order': False, 'shape': (), }",
                      "\x07\x00\x00\x00\x00\x00\x00\x00"s, 3));
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ(tensor->typeText(), "int64 []");
  EXPECT_EQ(valuesOf(*tensor), (std::vector<double>{7}));
}

TEST(Npy, makesBoolsZeroOrOne) {
  Expected<Tensor> tensor = parse(
      numpyFile("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }",
                "\x01\x00\x7f"s));
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ(valuesOf(*tensor), (std::vector<double>{1, 0, 1}));
}

TEST(Npy, everyTypeComesBack) {
  for (DType dtype : partita::abi::EnumValuesDType()) {
    for (std::vector<int64_t> shape :
         {std::vector<int64_t>{}, {5}, {2, 0, 3}, {2, 3}}) {
      Expected<Tensor> tensor = Tensor::allocate(dtype, shape);
      ASSERT_TRUE(tensor.ok());
      for (int64_t i = 0; i < tensor->bytes(); ++i)
        tensor->mutableData()[i] = uint8_t(i % 2);
      std::string file = npyHeader(*tensor);
      EXPECT_EQ(file.size() % 64, 0u);
      file.append(reinterpret_cast<const char *>(tensor->data()),
                  size_t(tensor->bytes()));
      Expected<Tensor> back = parse(file, dtype);
      ASSERT_TRUE(back.ok()) << back.status().message();
      EXPECT_EQ(back->typeText(), tensor->typeText());
      EXPECT_EQ(
          std::memcmp(back->data(), tensor->data(), size_t(tensor->bytes())),
          0);
    }
  }
}

TEST(Npy, writesWhatNumpyWrites) {
  Tensor tensor = makeTensor<float>(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(npyHeader(tensor), kMatrix.substr(0, kMatrix.size() - 24));
}

TEST(Npy, rawBytesNeedToKnowTheirType) {
  const std::string file = numpyFile(
      "{'descr': '|V2', 'fortran_order': False, 'shape': (1,), }", "\x80\x3f"s);
  expectError(parse(file), "raw bytes");
  expectError(parse(file, DType::f32), "float32 is needed");
  Expected<Tensor> tensor = parse(file, DType::bf16);
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ(valuesOf(*tensor), (std::vector<double>{1}));
}

TEST(Npy, narrowIntegersMustFit) {
  const std::string head =
      "{'descr': '|i1', 'fortran_order': False, 'shape': (2,), }";
  Expected<Tensor> tensor = parse(numpyFile(head, "\x07\xf8"s), DType::i4);
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ(tensor->dtype(), DType::i4);
  EXPECT_EQ(valuesOf(*tensor), (std::vector<double>{7, -8}));
  expectError(parse(numpyFile(head, "\x07\x08"s), DType::i4),
              "element 1 is 8, which does not fit into int4");
}

TEST(Npy, refusesWhatIsNoNumbers) {
  auto withType = [](const std::string &descr) {
    return parse(numpyFile("{'descr': " + descr +
                               ", 'fortran_order': False, 'shape': (1,), }",
                           "\0\0\0\0\0\0\0\0"s));
  };
  expectError(withType("'|O'"), "Python objects");
  expectError(withType("'<U2'"), "strings");
  expectError(withType("'<c8'"), "complex");
  expectError(withType("[('a', '<i8')]"), "records");
  expectError(withType("'<f16'"), "'<f16' is not supported");
  expectError(withType("''"), "not known");
}

TEST(Npy, refusesSizesThatDoNotMatch) {
  auto withShape = [](const std::string &shape) {
    return parse(numpyFile(
        "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }",
        "\0\0\0\0"s));
  };
  EXPECT_TRUE(withShape("(1,)").ok());
  expectError(withShape("(2,)"), "8 bytes, but 4 bytes follow");
  expectError(withShape("(0,)"), "0 bytes, but 4 bytes follow");
  expectError(withShape("(9223372036854775807, 9223372036854775807)"),
              "4 bytes follow");
  expectError(withShape("(4294967296, 4294967296)"), "4 bytes follow");
  expectError(withShape("(4611686018427387905,)"), "4 bytes follow");
  expectError(withShape("(-1,)"), "header");
  expectError(withShape("(1)"), "header");
  expectError(withShape("(99999999999999999999,)"), "header");
}

TEST(Npy, headerDictionaries) {
  EXPECT_TRUE(parseNpyHeader("{\"shape\":(3L,),\"descr\":\"<f4\","
                             "\"fortran_order\":True}")
                  .ok());
  for (const char *text :
       {"", "{", "{}", "{'descr'}", "{'descr': '<f4'", "nonsense",
        "{'descr': '<f4', 'descr': '<f4', 'shape': (), }",
        "{'descr': '<f4', 'fortran_order': 1, 'shape': ()}",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': True, 'shape': ()} and more",
        "{'descr': '<f4\\'', 'fortran_order': True, 'shape': ()}"})
    EXPECT_FALSE(parseNpyHeader(text).ok()) << text;
}

TEST(Npy, truncatedAnywhereIsAnError) {
  for (size_t size = 0; size < kMatrix.size(); ++size)
    EXPECT_FALSE(parse(kMatrix.substr(0, size)).ok()) << size;
  EXPECT_FALSE(parse(kMatrix + "x").ok());
}

TEST(Npy, changedAnywhereNeverCrashes) {
  for (size_t at = 0; at < kMatrix.size(); ++at) {
    for (int change = 1; change < 256; ++change) {
      std::string file = kMatrix;
      file[at] = char(file[at] ^ change);
      Expected<Tensor> tensor = parse(file);
      if (tensor.ok()) {
        EXPECT_EQ(tensor->bytes(), 24);
      }
    }
  }
}

TEST(Npy, filesThatAreNone) {
  Folder folder;
  expectError(readNpy(folder.file("absent.npy")), "No such file");
  expectError(readNpy(folder.path.string()), "not a regular file");
  expectError(readNpy(folder.write("empty.npy", "")), "not a .npy file");
}

} // namespace
