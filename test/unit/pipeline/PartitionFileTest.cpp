//===- PartitionFileTest.cpp - What a partition file may say --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/model/PartitionFile.h"
#include "compiler/model/ByteSize.h"
#include "compiler/model/NodeNames.h"
#include "compiler/pipeline/partition/BlockPatterns.h"

#include <gtest/gtest.h>

using namespace partita;
using partita::pipeline::joinNumbered;

namespace {

std::string errorOf(const std::string &text) {
  std::string error;
  int count = 0;
  bool failed = mlir::failed(parsePartitionFile(
      text, [&](int line, int column, const std::string &message) {
        error = std::to_string(line) + ":" + std::to_string(column) + ": " +
                message;
        ++count;
      }));
  EXPECT_EQ(failed, count == 1) << error;
  return error;
}

TEST(PartitionFile, ReadsEveryKey) {
  auto file = parsePartitionFile("blocks: {B1: [\"a*\", b], B2: c}\n"
                                 "begin_blocks: {B3: d}\n"
                                 "auto_stage: auto_increment\n"
                                 "stages: [[B1], [B2, B3], []]\n"
                                 "devices: [2, 0, 1]\n"
                                 "strategy: sharded\n"
                                 "schedule: looped\n"
                                 "micro_batches: 7\n"
                                 "memory: 1.5GiB\n",
                                 [](int line, int, const std::string &message) {
                                   FAIL() << line << ": " << message;
                                 });
  ASSERT_TRUE(mlir::succeeded(file));
  ASSERT_EQ(file->blocks.size(), 3u);
  EXPECT_EQ(file->blocks[0].nodes[0].text, "a*");
  EXPECT_EQ(file->blocks[0].nodes[1].line, 1);
  EXPECT_EQ(file->blocks[2].begin->text, "d");
  EXPECT_EQ(file->stages->size(), 3u);
  EXPECT_EQ(file->devices, (std::vector<int64_t>{2, 0, 1}));
  EXPECT_EQ(*file->microBatches, 7);
  EXPECT_EQ(file->strategy->text, "sharded");
  EXPECT_EQ(file->schedule->text, "looped");
  EXPECT_EQ(*file->memory, 3 << 29);
}

TEST(PartitionFile, NamesWhatIsWrong) {
  EXPECT_EQ(errorOf(""), "") << "an empty file leaves all to the compiler";
  EXPECT_EQ(errorOf("blocks: {A: [x]}\nstages: [[A], [A]]"),
            "2:16: block 'A' is already in stage 0");
  EXPECT_EQ(errorOf("blocks: {A: [x], B: [y]}\nstages: [[A]]"),
            "1:18: block 'B' is in no stage: name it in `stages`, or leave "
            "`stages` out");
  EXPECT_EQ(errorOf("stages: [[]]\ndevices: [0, 1]"),
            "2:11: there are 2 devices for 1 stage: name one for each stage");
  EXPECT_EQ(errorOf("micro_batches: many"),
            "1:16: expected a whole number of at least 1, found 'many'");
  EXPECT_EQ(errorOf("strategy: [x]"), "1:12: expected a name");
  EXPECT_EQ(
      errorOf("schedule: fill-drain"),
      "1:11: unknown schedule 'fill-drain' (fill_drain, sequential, "
      "looped, gpipe, 1f1b, interleaved, zb_h1, zb_v, auto); did you mean "
      "'fill_drain'?");
  EXPECT_EQ(errorOf("schedule: auto"), "");
  EXPECT_EQ(errorOf("schedule: sharded"), "") << "what sequential was called";
  EXPECT_EQ(errorOf("memory: much"),
            "1:9: expected a size, e.g. 512MiB or 2GB, found 'much'");
  EXPECT_EQ(errorOf("fusion_bytes: 0"), "");
  EXPECT_EQ(errorOf("fusion_bytes: 32MiB"), "");
  EXPECT_EQ(errorOf("fusion_bytes: [1]"), "1:16: expected a name");
  EXPECT_EQ(errorOf("fusion_bytes: -1"),
            "1:15: expected a size, e.g. 512MiB or 2GB, found '-1'");
  EXPECT_EQ(errorOf("reproducible: maybe"),
            "1:15: expected true or false, found 'maybe'");
  EXPECT_EQ(errorOf("strategy: pipelined\nstrategy: sharded"),
            "2:1: 'strategy' stands here twice");
  EXPECT_EQ(errorOf("blocks: {A: [x], A: [y]}"), "1:18: 'A' stands here twice");
  EXPECT_EQ(errorOf("blocks: {A: [x]}\nbegin_blocks: {A: y}"), "")
      << "a block that begins at y, and has x as well";
  EXPECT_EQ(errorOf("devices: [5000]").substr(0, 5), "1:11:");
  EXPECT_NE(errorOf("- a\n- b"), "");
  EXPECT_NE(errorOf("blocks: {A: [x"), "");
  EXPECT_EQ(errorOf("?\r%"), "1:1: the file is not YAML");
  EXPECT_NE(errorOf("blocks:\n  B0:\n    - \"Add:z\"\nstages: [[B0], []]\n"
                    "devices: [0\b 1]\nstrategy: pipelined\nmicro_\xe8"
                    "atches: 3"),
            "");
}

TEST(PartitionFile, NamesTheBracketThatIsMissing) {
  const std::string missing = "a `}` is missing: nothing closes this `{`";
  EXPECT_EQ(errorOf("blocks: {A: [x]\nstages: [[A]]"), "1:9: " + missing);
  EXPECT_EQ(errorOf("blocks: {A: '}', B: \"\\\"}\" # }\nstages: x"),
            "1:9: " + missing);
  EXPECT_EQ(errorOf("blocks: {A: [x}\n"),
            "1:13: a `]` is missing: nothing closes this `[` before the `}` in "
            "line 1");
  // Outside brackets, a glob is text.
  EXPECT_EQ(errorOf("blocks:\n  A: a.[0-9\n  B: {b}"),
            "3:7: expected a list, e.g. [\"/conv1/*\", \"/pool1\"]");
}

TEST(PartitionFile, LongLinesHaveColumns) {
  EXPECT_EQ(errorOf("devices: [" + std::string(100000, ' ') + "x]"),
            "1:100011: expected a whole number of at least 0, found 'x'");
  EXPECT_EQ(errorOf("memory: 1GB\r\n\r\nstages: 7"),
            "3:9: expected the blocks of each stage, e.g. [[B1], [B2]]");
}

TEST(ByteSize, ReadsWhatPeopleWrite) {
  EXPECT_EQ(parseByteSize("4096"), 4096);
  EXPECT_EQ(parseByteSize("512MiB"), 512 << 20);
  EXPECT_EQ(parseByteSize("2 GB"), 2000000000);
  EXPECT_EQ(parseByteSize("1.5KiB"), 1536);
  EXPECT_EQ(parseByteSize("64B"), 64);
  for (const char *text : {"", "MiB", "0", "-1", "12 MiBs", "1e3", "inf",
                           "99999999TiB", "1.2.3MB"})
    EXPECT_EQ(parseByteSize(text), std::nullopt) << text;
}

TEST(PartitionFile, EveryTruncationIsAnswered) {
  std::string text = "blocks: {B1: [\"a*\", 'b'], B2: [c]}\n"
                     "stages:\n  - [B1]\n  - [B2]\ndevices: [0, 1]\n";
  for (size_t length = 0; length < text.size(); ++length) {
    int errors = 0;
    bool failed = mlir::failed(
        parsePartitionFile(text.substr(0, length),
                           [&](int, int, const std::string &) { ++errors; }));
    EXPECT_EQ(errors, failed ? 1 : 0) << length;
  }
}

TEST(Names, NearestName) {
  EXPECT_EQ(didYouMean("/conv1/Cnv", {"/fc", "/conv1/Conv"}),
            "; did you mean '/conv1/Conv'?");
  EXPECT_EQ(didYouMean("zzzzzzzz", {"/fc"}), "");
}

TEST(Names, GlobsOnlyWhereTheyAreUnambiguous) {
  using Lists = std::vector<std::vector<std::string>>;
  EXPECT_EQ(compactNames({{"/a/x", "/a/y"}, {"/b/x"}}),
            (Lists{{"/a/*", "/a/*"}, {"/b/x"}}));
  EXPECT_EQ(compactNames({{"/a/x", "/a/y"}, {"/a/z", "n[0]"}}),
            (Lists{{"/a/x", "/a/y"}, {"/a/z", "n\\[0\\]"}}));
  EXPECT_EQ(compactNames({{"m/l.0/q", "m/l.0/k", "m/l.1/q"}, {"m/l.1/k"}}),
            (Lists{{"m/l.0/*", "m/l.0/*", "m/l.1/q"}, {"m/l.1/k"}}));
}

TEST(Names, NumbersAreJoined) {
  using List = std::vector<std::string>;
  EXPECT_EQ(joinNumbered({"embed", "layer.0", "layer.1", "layer.2", "head"}),
            (List{"embed", "layer.[0-2]", "head"}));
  EXPECT_EQ(joinNumbered({"layer.9", "layer.10"}), (List{"layer.{9,10}"}));
  EXPECT_EQ(joinNumbered({"layer.3", "layer.1"}), (List{"layer.{1,3}"}));
  EXPECT_EQ(joinNumbered({"a.0.b.1.out", "a.0.b.2.out", "a.1.b.1.out"}),
            (List{"a.0.b.[1-2].out", "a.1.b.1.out"}));
  EXPECT_EQ(joinNumbered({"layer.01", "layer.7"}),
            (List{"layer.01", "layer.7"}))
      << "a number is written as it stands";
}

} // namespace
