//===- ExternalDataTest.cpp - Paths that come from a model ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/model/ModelFile.h"

#include "mlir/IR/MLIRContext.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace partita::import;
namespace fs = std::filesystem;

namespace {

class ExternalDataTest : public testing::Test {
protected:
  void SetUp() override {
    root = fs::temp_directory_path() /
           ("partita-external-" + std::to_string(getpid()));
    fs::create_directories(root / "model" / "sub");
    std::ofstream(root / "secret") << "secret";
    std::ofstream(root / "model" / "w.bin") << "0123456789";
    std::ofstream(root / "model" / "sub" / "w.bin") << "abcdef";
    context.getDiagEngine().registerHandler(
        [this](mlir::Diagnostic &diagnostic) { message = diagnostic.str(); });
  }
  void TearDown() override { fs::remove_all(root); }

  /// The bytes, or the error.
  std::string open(const std::string &location, int64_t offset = 0,
                   int64_t length = -1) {
    auto bytes = openExternalData((root / "model").string(), location, offset,
                                  length, /*mayBeAbsent=*/false,
                                  mlir::UnknownLoc::get(&context));
    return mlir::succeeded(bytes) ? bytes->data.str() : "error: " + message;
  }
  bool refuses(const std::string &location, const std::string &why) {
    return open(location).find(why) != std::string::npos;
  }

  fs::path root;
  mlir::MLIRContext context;
  std::string message;
};

TEST_F(ExternalDataTest, Opens) {
  EXPECT_EQ(open("w.bin"), "0123456789");
  EXPECT_EQ(open("./w.bin", 2, 3), "234");
  EXPECT_EQ(open("sub/w.bin", 4), "ef");
  EXPECT_EQ(open("w.bin", 10, 0), "");
}

TEST_F(ExternalDataTest, RefusesPathsOutside) {
  EXPECT_TRUE(refuses("../secret", "it holds '..'"));
  EXPECT_TRUE(refuses("sub/../../secret", "it holds '..'"));
  EXPECT_TRUE(refuses((root / "secret").string(), "it is an absolute path"));
  EXPECT_TRUE(refuses("", "it names no file"));
  EXPECT_TRUE(refuses(std::string("w.bin\0x", 7), "null character"));
}

TEST_F(ExternalDataTest, SaysWhereItLooked) {
  const std::string folder =
      "in the folder '" + (root / "model").string() + "': No such file";
  EXPECT_TRUE(refuses("none.bin", folder.c_str()));
}

TEST_F(ExternalDataTest, RefusesLinksAndSpecialFiles) {
  fs::create_symlink(root / "secret", root / "model" / "link");
  fs::create_directory_symlink(root, root / "model" / "out");
  fs::create_hard_link(root / "secret", root / "model" / "hard");
  mkfifo((root / "model" / "fifo").c_str(), 0600);
  EXPECT_TRUE(refuses("link", "is a symbolic link"));
  EXPECT_TRUE(refuses("out/secret", "cannot use external data"));
  EXPECT_TRUE(refuses("hard", "several names"));
  EXPECT_TRUE(refuses("fifo", "not a regular file"));
  EXPECT_TRUE(refuses("sub", "not a regular file"));
}

TEST_F(ExternalDataTest, RefusesBytesBeyondTheEnd) {
  EXPECT_NE(open("w.bin", 8, 3).find("the file has 10"), std::string::npos);
  EXPECT_NE(open("w.bin", 11).find("the file has 10"), std::string::npos);
  EXPECT_NE(open("w.bin", INT64_MAX, INT64_MAX).find("the file has 10"),
            std::string::npos);
}

} // namespace
