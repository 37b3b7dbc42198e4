//===- TrainLogTest.cpp - Logs of a training, and their files -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/io/Support.h"

#include "runtime/train/EventFile.h"

#include <cmath>

using namespace partita::runtime;
using namespace partita::runtime::train;
using namespace partita::runtime::testing;

namespace {

TEST(TrainLog, writesLines) {
  Folder folder;
  Expected<TrainLog> log = TrainLog::open(folder.file("log.jsonl"));
  ASSERT_TRUE(log.ok()) << log.status().message();
  ASSERT_TRUE(
      log->write({1, 0, 0.5, 0.001, 812.5, 0.25, {{"accuracy", 0.75}}}).ok());
  ASSERT_TRUE(log->write({2, 1, NAN, {}, {}, {}, {}}).ok());
  EXPECT_EQ(fileBytes(folder.file("log.jsonl")),
            "{\"step\":1,\"epoch\":0,\"loss\":0.5,\"learning_rate\":0.001,"
            "\"samples_per_second\":812.5,\"data_wait_fraction\":0.25,"
            "\"eval\":{\"accuracy\":0.75}}\n"
            "{\"step\":2,\"epoch\":1,\"loss\":\"nan\"}\n");
  TrainRecord bad;
  bad.eval["\xff"] = 0;
  expectError(log->write(bad), "not UTF-8");
}

TEST(TrainLog, goesOnAfterHalfALine) {
  for (const auto &[before, kept] :
       {std::pair("{\"step\":1}\n{\"st", "{\"step\":1}\n"),
        std::pair("{\"st", ""), std::pair("{}\n", "{}\n")}) {
    Folder folder;
    const std::string path = folder.write("log.jsonl", before);
    Expected<TrainLog> log = TrainLog::open(path);
    ASSERT_TRUE(log.ok()) << log.status().message();
    ASSERT_TRUE(log->write({}).ok());
    EXPECT_EQ(fileBytes(path),
              std::string(kept) + "{\"step\":0,\"epoch\":0}\n");
  }
}

TEST(TrainLog, refusesWhatIsNoFile) {
  Folder folder;
  expectError(TrainLog::open(folder.path), "cannot write");
  expectError(TrainLog::open(folder.file("none/log")), "cannot write");
  expectError(TrainLog::open("/dev/null"), "not a file");
}

TEST(EventFile, hasCastagnolisSum) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
}

TEST(EventFile, replacesNoOther) {
  Folder folder;
  Expected<EventFile> one = EventFile::create(folder.path),
                      other = EventFile::create(folder.path);
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_NE(one->path(), other->path());
  EXPECT_EQ(folder.entries(), 2u);
  expectError(EventFile::create(folder.file("none")), "cannot write");
}

} // namespace
