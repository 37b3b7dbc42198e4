//===- NpzTest.cpp - .npz archives, good, foreign and broken --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support.h"

#include "runtime/io/Npz.h"

using namespace partita;
using namespace partita::runtime;
using namespace partita::runtime::testing;
using partita::abi::DType;

namespace {

/// numpy.savez_compressed(x=numpy.arange(4, dtype='<f4'),
///                        y=numpy.zeros(64, 'u1'))
const char *const kCompressed =
    "504b03042d000000080000002100523313fbffffffffffffffff05001400"
    "782e6e70790100100090000000000000004e000000000000009bec17ea1b"
    "10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e965f54529498"
    "179f5f94920a12774bcc294e058a17672416a402f91a263a9a3a0ab50a14"
    "002e063068b007120e40e40000504b03042d000000080000002100843fe3"
    "e4ffffffffffffffff05001400792e6e707901001000c000000000000000"
    "48000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a05e"
    "536aa8aea3a09e965f54529498179f5f94920a12774bcc294e058a176724"
    "16a402f91a66263a9a3a0ab50ae4032e060a0100504b01022d032d000000"
    "080000002100523313fb4e00000090000000050000000000000000000000"
    "800100000000782e6e7079504b01022d032d000000080000002100843fe3"
    "e448000000c0000000050000000000000000000000800185000000792e6e"
    "7079504b0506000000000200020066000000040100000000";

std::string fromHex(const std::string &hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += char(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

TEST(Npz, readsNumpysCompressed) {
  Folder folder;
  auto tensors = readNpz(folder.write("c.npz", fromHex(kCompressed)));
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  ASSERT_EQ(tensors->size(), 2u);
  EXPECT_EQ((*tensors)[0].name, "x");
  EXPECT_EQ(valuesOf((*tensors)[0].tensor), (std::vector<double>{0, 1, 2, 3}));
  EXPECT_EQ((*tensors)[1].name, "y");
  EXPECT_EQ((*tensors)[1].tensor.typeText(), "uint8 [64]");
}

TEST(Npz, comesBack) {
  Folder folder;
  std::vector<NamedTensor> written = {
      {"logits", makeTensor<float>(DType::f32, {2, 2}, {1, -2, 3.5, 0})},
      {"/deep/name:0", makeTensor<int64_t>(DType::i64, {}, {42})},
      {"nothing", makeTensor<float>(DType::f32, {0, 3}, {})}};
  ASSERT_TRUE(writeNpz(folder.file("a.npz"), written).ok());
  auto read = readNpz(folder.file("a.npz"));
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->size(), written.size());
  for (size_t i = 0; i < written.size(); ++i) {
    EXPECT_EQ((*read)[i].name, written[i].name);
    EXPECT_EQ((*read)[i].tensor.typeText(), written[i].tensor.typeText());
    EXPECT_EQ(valuesOf((*read)[i].tensor), valuesOf(written[i].tensor));
  }
  // Equal tensors give equal files.
  ASSERT_TRUE(writeNpz(folder.file("b.npz"), written).ok());
  EXPECT_EQ(fileBytes(folder.file("a.npz")), fileBytes(folder.file("b.npz")));
  EXPECT_EQ(folder.entries(), 2u);
}

TEST(Npz, readsOneArray) {
  Folder folder;
  const std::string both = folder.write("both.npz", fromHex(kCompressed));
  auto y = readNpzArray(both, "y");
  ASSERT_TRUE(y.ok()) << y.status().message();
  EXPECT_EQ(y->name, "y");
  EXPECT_EQ(y->tensor.typeText(), "uint8 [64]");
  expectError(readNpzArray(both, "z"),
              "there is no array 'z'; known: 'x', 'y'");
  expectError(readNpzArray(both, ""),
              "it has 2 arrays; name one, e.g. '" + both + ":x'");

  const std::string one = folder.file("one.npz");
  ASSERT_TRUE(
      writeNpz(one, {{"a", makeTensor<float>(DType::f32, {1}, {7})}}).ok());
  auto only = readNpzArray(one, "");
  ASSERT_TRUE(only.ok()) << only.status().message();
  EXPECT_EQ(only->name, "a");
}

TEST(Npz, failureLeavesNothing) {
  Folder folder;
  std::vector<NamedTensor> tensors = {
      {"x", makeTensor<float>(DType::f32, {1}, {1})}};
  EXPECT_FALSE(writeNpz(folder.file("absent/a.npz"), tensors).ok());
  std::filesystem::create_directory(folder.path / "taken.npz");
  expectError(writeNpz(folder.file("taken.npz"), tensors), "not a file");
  // Two arrays of one name cannot be written.
  tensors.push_back(tensors[0]);
  folder.write("kept.npz", "as before");
  EXPECT_FALSE(writeNpz(folder.file("kept.npz"), tensors).ok());
  EXPECT_EQ(fileBytes(folder.file("kept.npz")), "as before");
  EXPECT_FALSE(writeNpz(folder.file("empty.npz"), {}).ok());
  EXPECT_EQ(folder.entries(), 2u);
}

TEST(Npz, truncatedAnywhereIsAnError) {
  Folder folder;
  const std::string file = fromHex(kCompressed);
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(readNpz(folder.write("t.npz", file.substr(0, size))).ok())
        << size;
}

TEST(Npz, changedAnywhereNeverCrashes) {
  Folder folder;
  const std::string good = fromHex(kCompressed);
  for (size_t at = 0; at < good.size(); ++at)
    for (int change : {0x01, 0x80, 0xff}) {
      std::string file = good;
      file[at] = char(file[at] ^ change);
      auto tensors = readNpz(folder.write("m.npz", file));
      if (!tensors.ok())
        continue;
      for (const NamedTensor &item : *tensors)
        EXPECT_EQ(valuesOf(item.tensor).size(), size_t(item.tensor.elements()));
    }
}

} // namespace
