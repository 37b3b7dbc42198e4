//===- OpenDatasetTest.cpp - Files of all formats by name -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/data/Support.h"

#include "runtime/data/OpenDataset.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Npz.h"

using namespace partita;
using namespace partita::data;
using namespace partita::data::testing;
using partita::abi::DType;
using partita::runtime::NamedTensor;
using partita::runtime::Tensor;

namespace {

std::string npy(const Tensor &tensor) {
  return runtime::npyHeader(tensor) +
         std::string(reinterpret_cast<const char *>(tensor.data()),
                     size_t(tensor.bytes()));
}

/// A .npy file with the header's text as it is, padded to 118 characters.
std::string npyWith(std::string header, const std::string &elements) {
  header.resize(117, ' ');
  return std::string("\x93NUMPY\x01\0\x76\0", 10) + header + "\n" + elements;
}

const Tensor &matrix() {
  static const Tensor tensor =
      makeTensor<float>(DType::f32, {3, 2}, {1, 2, 3, 4, 5, 6});
  return tensor;
}

TEST(OpenDataset, mapsNpy) {
  Folder folder;
  auto dataset = openDataset(folder.write("x.npy", npy(matrix())));
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->count(), 3);
  EXPECT_EQ((*dataset)->sampleShape(), (std::vector<int64_t>{2}));
  EXPECT_EQ(elementsOf<float>(**dataset, 2, 1), (std::vector<float>{5, 6}));
}

TEST(OpenDataset, refusesArraysThatItWouldHaveToConvert) {
  Folder folder;
  const std::string rest = "'shape': (2, 2), }";
  expectError(
      openDataset(folder.write(
          "f.npy", npyWith("{'descr': '<f4', 'fortran_order': True, " + rest,
                           std::string(16, '\0')))),
      "numpy.ascontiguousarray");
  expectError(
      openDataset(folder.write(
          "b.npy", npyWith("{'descr': '>f4', 'fortran_order': False, " + rest,
                           std::string(16, '\0')))),
      "save array.astype('<f4')");
  expectError(openDataset(folder.write(
                  "s.npy", npy(makeTensor<float>(DType::f32, {}, {1})))),
              "has no dimension of samples");
  expectError(openDataset(folder.write("t.npy", npy(matrix()).substr(0, 140))),
              "12 bytes follow");
}

TEST(OpenDataset, readsRawBytesOfAKnownType) {
  Folder folder;
  const std::string path = folder.write(
      "h.npy", npy(makeTensor<uint16_t>(DType::bf16, {2, 1}, {1, 2})));
  expectError(openDataset(path), "raw bytes");
  auto dataset = openDataset(path, {.dtype = DType::bf16});
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->dtype(), DType::bf16);
}

TEST(OpenDataset, takesAnArrayOfAnNpz) {
  Folder folder;
  const std::string two = folder.file("two.npz");
  ASSERT_TRUE(
      runtime::writeNpz(
          two, {{"images", matrix()},
                {"labels", makeTensor<int64_t>(DType::i64, {3}, {7, 8, 9})}})
          .ok());
  auto labels = openDataset(two, {.parts = {"labels"}});
  ASSERT_TRUE(labels.ok()) << labels.status().message();
  EXPECT_EQ((*labels)->name(), "'" + two + ":labels'");
  EXPECT_TRUE((*labels)->sampleShape().empty());
  EXPECT_EQ(allOf<int64_t>(**labels), (std::vector<int64_t>{7, 8, 9}));
  expectError(openDataset(two), "it has 2 arrays; name one");
  expectError(openDataset(two, {.parts = {"lables"}}), "did you mean 'labels'");
  expectError(openDataset(two, {.parts = {"images", "labels"}}),
              "name one array");

  const std::string one = folder.file("one.npz");
  ASSERT_TRUE(runtime::writeNpz(one, {{"x", matrix()}}).ok());
  ASSERT_TRUE(openDataset(one).ok());
  EXPECT_EQ((*openDataset(one))->count(), 3);
}

TEST(OpenDataset, knowsIdxByItsBytes) {
  Folder folder;
  const std::string idx("\0\0\x08\x01\0\0\0\x02"
                        "ab",
                        10);
  auto dataset = openDataset(folder.write("labels-idx1-ubyte", idx));
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  EXPECT_EQ(allOf<char>(**dataset), (std::vector<char>{'a', 'b'}));
  // By name these are tokens, whatever their bytes are.
  auto tokens = openDataset(folder.write("labels.bin", idx), {.window = 1});
  ASSERT_TRUE(tokens.ok()) << tokens.status().message();
  EXPECT_EQ((*tokens)->dtype(), DType::u16);
}

TEST(OpenDataset, takesInputsAndTargetsOfTokens) {
  Folder folder;
  const std::string path =
      folder.write("t.bin", std::string("\1\0\2\0\3\0\4\0\5\0", 10));
  using Words = std::vector<uint16_t>;
  auto inputs = openDataset(path, {.window = 2});
  ASSERT_TRUE(inputs.ok()) << inputs.status().message();
  EXPECT_EQ(allOf<uint16_t>(**inputs), (Words{1, 2, 3, 4}));
  auto targets = openDataset(path, {.parts = {"targets"}, .window = 2});
  ASSERT_TRUE(targets.ok()) << targets.status().message();
  EXPECT_EQ(allOf<uint16_t>(**targets), (Words{2, 3, 4, 5}));
  EXPECT_EQ((*openDataset(path, {.window = 2, .stride = 1}))->count(), 3);
  expectError(openDataset(path, {.parts = {"target"}, .window = 2}),
              "did you mean 'targets'");
  expectError(openDataset(path), "e.g. window=256");
}

TEST(OpenDataset, readsColumns) {
  Folder folder;
  const std::string path = folder.write("t.csv", "a,b\n1,2\n");
  auto dataset = openDataset(path, {.parts = {"b"}, .dtype = DType::i64});
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  EXPECT_EQ(allOf<int64_t>(**dataset), (std::vector<int64_t>{2}));
  expectError(openDataset(path, {.parts = {"c"}}),
              "cannot read '" + path + ":c': there is no column 'c'");
}

TEST(OpenDataset, refusesOptionsOfOtherFormats) {
  Folder folder;
  const std::string path = folder.write("x.npy", npy(matrix()));
  expectError(openDataset(path, {.parts = {"x"}}), "leave out ':x'");
  expectError(openDataset(path, {.window = 1}), "leave out 'window'");
  expectError(openDataset(path, {.stride = 1}), "leave out 'stride'");
  expectError(openDataset(path, {.dtype = DType::u8}),
              "it holds f32, not u8; leave out 'dtype'");
}

TEST(OpenDataset, refusesWhatItDoesNotKnow) {
  Folder folder;
  expectError(openDataset(folder.file("absent")), "cannot open");
  expectError(openDataset(folder.path.string()), "not a regular file");
  expectError(openDataset(folder.write("empty", "")), "it is empty");
  expectError(openDataset(folder.write("text.txt", "1 2 3")),
              "its format is not known; it must be IDX");
  expectError(openDataset(folder.write("empty.csv", "")), "it is empty");
  EXPECT_EQ(
      (*openDataset(folder.write("empty.bin", ""), {.window = 4}))->count(), 0);
}

} // namespace
