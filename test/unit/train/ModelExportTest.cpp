//===- ModelExportTest.cpp - Trained weights in a copy of the model -------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/io/Support.h"

#include "runtime/train/ContentHash.h"
#include "runtime/train/ModelExport.h"

using namespace partita::runtime;
using namespace partita::runtime::train;
using namespace partita::runtime::testing;

namespace {

class ModelExport : public ::testing::Test {
protected:
  void SetUp() override {
    std::filesystem::create_directories(folder.path / "from" / "data");
    original = folder.write("from/model.onnx", model);
    folder.write("from/data/w.bin", weights);
  }
  ModelPart part(const std::string &file, const std::string &bytes) const {
    return {file, bytes.size(), contentHash(bytesOf(bytes))};
  }
  std::vector<ModelPart> parts() const {
    return {part("", model), part("data/w.bin", weights)};
  }
  Status run(const std::vector<ModelPatch> &patches,
             const std::string &output = "to/model.onnx") const {
    return exportModel(original, parts(), patches, folder.file(output));
  }
  void expectNothingWritten() const {
    EXPECT_EQ(fileBytes(original), model);
    EXPECT_EQ(fileBytes(folder.file("from/data/w.bin")), weights);
    EXPECT_FALSE(std::filesystem::exists(folder.path / "to" / "model.onnx"));
  }

  Folder folder;
  const std::string model = "0123456789", weights = "abcdefgh";
  const std::string patch = "XY";
  std::string original;
};

TEST_F(ModelExport, changesNothingButPatches) {
  Status status = run({{"", 8, bytesOf(patch)},
                       {"data/w.bin", 3, bytesOf(patch)},
                       {"", 0, bytesOf(patch)},
                       {"", 2, bytesOf(patch)}});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(fileBytes(folder.file("to/model.onnx")), "XYXY4567XY");
  EXPECT_EQ(fileBytes(folder.file("to/data/w.bin")), "abcXYfgh");
  EXPECT_EQ(fileBytes(original), model);
  EXPECT_EQ(fileBytes(folder.file("from/data/w.bin")), weights);
  // Again, over what is there.
  ASSERT_TRUE(run({}).ok());
  EXPECT_EQ(fileBytes(folder.file("to/model.onnx")), model);
  EXPECT_EQ(fileBytes(folder.file("to/data/w.bin")), weights);
}

TEST_F(ModelExport, refusesToReplaceTheOriginal) {
  std::filesystem::create_directory(folder.path / "to");
  std::filesystem::create_symlink(original, folder.path / "to" / "link.onnx");
  for (const char *output :
       {"from/model.onnx", "from/../from/model.onnx", "to/link.onnx"})
    expectError(run({{"", 0, bytesOf(patch)}}, output), "another folder");
  expectError(run({}, "from/data/w.bin"), "another folder");
  expectNothingWritten();
}

TEST_F(ModelExport, refusesToReplaceExternalData) {
  expectError(run({}, "from/trained.onnx"), "export into another folder");
  EXPECT_FALSE(std::filesystem::exists(folder.path / "from" / "trained.onnx"));
  // Without external data there is no reason to.
  Status status = exportModel(original, {part("", model)}, {},
                              folder.file("from/trained.onnx"));
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(ModelExport, refusesANameOfExternalData) {
  folder.write("from/one", weights);
  expectError(exportModel(original, {part("", model), part("one", weights)}, {},
                          folder.file("to/one")),
              "give it another name");
}

TEST_F(ModelExport, refusesAnotherOriginal) {
  folder.write("from/data/w.bin", "abcdefgi");
  expectError(run({}), "is not what it was");
  folder.write("from/data/w.bin", "abc");
  expectError(run({}), "w.bin' is not what it was");
  EXPECT_FALSE(std::filesystem::exists(folder.path / "to"));
}

TEST_F(ModelExport, refusesWrongPatches) {
  expectError(run({{"", 9, bytesOf(patch)}}), "beyond the end");
  expectError(run({{"", ~uint64_t(0), bytesOf(patch)}}), "beyond the end");
  expectError(run({{"other.bin", 0, bytesOf(patch)}}), "not among");
  expectError(run({{"", 4, bytesOf(patch)}, {"", 3, bytesOf(patch)}}),
              "share bytes");
  expectError(exportModel(original, {}, {}, folder.file("to/model.onnx")),
              "are missing");
  expectNothingWritten();
}

TEST_F(ModelExport, refusesDataOutsideOfTheFolder) {
  folder.write("w.bin", weights);
  expectError(exportModel(original,
                          {part("", model), part("../w.bin", weights)}, {},
                          folder.file("to/model.onnx")),
              "leaves the artifact's directory");
  expectNothingWritten();
}

} // namespace
