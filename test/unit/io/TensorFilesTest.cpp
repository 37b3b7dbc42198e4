//===- TensorFilesTest.cpp - Names and folders of tensors -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support.h"

#include "runtime/base/NearestName.h"
#include "runtime/io/Npy.h"
#include "runtime/io/TensorFiles.h"

using namespace partita;
using namespace partita::runtime;
using namespace partita::runtime::testing;
using partita::abi::DType;

namespace {

TEST(Names, nearest) {
  const std::vector<std::string> known = {"input_ids", "attention_mask", "x"};
  EXPECT_EQ(nearestName("input_id", known), "input_ids");
  EXPECT_EQ(nearestName("atention_masks", known), "attention_mask");
  EXPECT_EQ(nearestName("entirely different", known), "");
  EXPECT_EQ(nearestName("y", known), "");
  EXPECT_EQ(unknownName("input", "input_id", known),
            "there is no input 'input_id'; did you mean 'input_ids'?");
  EXPECT_EQ(unknownName("input", "y", {"a", "b"}),
            "there is no input 'y'; known: 'a', 'b'");
}

TEST(Names, filesAreSafeAndDifferent) {
  EXPECT_EQ(
      fileNames({"logits", "a/b:0", "a_b_0", "../up", "", "-x", "logits"}),
      (std::vector<std::string>{"logits", "a_b_0", "a_b_0_2", "_.._up", "_",
                                "_-x", "logits_2"}));
}

TEST(Names, secondsGetNumbers) {
  EXPECT_EQ(uniqueNames({"a", "b", "a", "a.1", "a"}),
            (std::vector<std::string>{"a", "b", "a.2", "a.1", "a.3"}));
}

TEST(TensorFiles, folderOfNpy) {
  Folder folder;
  const std::string out = folder.file("out/");
  Tensor tensor = makeTensor<float>(DType::f32, {2}, {1, 2});
  ASSERT_TRUE(writeTensors(out, {{"a/b", tensor}, {"c", tensor}}).ok());
  Expected<Tensor> back = readNpy(out + "a_b.npy");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(valuesOf(*back), (std::vector<double>{1, 2}));
  EXPECT_TRUE(readNpy(out + "c.npy").ok());
  // Writing again replaces.
  ASSERT_TRUE(writeTensors(out, {{"c", tensor}}).ok());
}

TEST(TensorFiles, failureLeavesNothing) {
  Folder folder;
  Tensor tensor = makeTensor<float>(DType::f32, {2}, {1, 2});
  std::filesystem::create_directories(folder.path / "out" / "c.npy");
  EXPECT_FALSE(
      writeTensors(folder.file("out"), {{"a", tensor}, {"c", tensor}}).ok());
  EXPECT_FALSE(std::filesystem::exists(folder.path / "out" / "a.npy"));
}

TEST(TensorFiles, outputPaths) {
  Folder folder;
  EXPECT_TRUE(checkOutputPath(folder.file("a.npz")).ok());
  EXPECT_TRUE(checkOutputPath(folder.file("new/")).ok());
  EXPECT_TRUE(checkOutputPath(folder.file("new")).ok());
  EXPECT_TRUE(checkOutputPath(folder.path.string()).ok());
  expectError(checkOutputPath(folder.file("no/a.npz")), "there is no folder");
  expectError(checkOutputPath(folder.write("file", "x")), "it is a file");
  expectError(checkOutputPath("/dev/null"), "it is a file");
  expectError(checkOutputPath(folder.file("a.txt")), ".npz");
}

TEST(TensorFiles, unknownEnding) {
  expectError(readTensor("x.jpg"), "must end in .npy, .npz or .pb");
}

} // namespace
