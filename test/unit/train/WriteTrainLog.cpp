//===- WriteTrainLog.cpp - Writes logs for other programs to read ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// partita-write-train-log FOLDER: log.jsonl and two event files, of a training
// of steps 1 to 5 that goes on after step 3. read_train_log.py knows the
// values.

#include "runtime/train/EventFile.h"

#include <cstdio>

using namespace partita::runtime;
using namespace partita::runtime::train;

static Status writeRun(const std::string &folder, int64_t first, int64_t last,
                       std::optional<int64_t> after) {
  Expected<TrainLog> log = TrainLog::open(folder + "/log.jsonl");
  if (!log)
    return log.status();
  Expected<EventFile> events = EventFile::create(folder, after);
  if (!events)
    return events.status();
  for (int64_t step = first; step <= last; ++step) {
    TrainRecord record;
    record.step = step * 100;
    record.epoch = step;
    record.loss = after ? 2.0 / double(step) : 1.0 / double(step);
    record.learning_rate = 0.125;
    record.samples_per_second = 1000;
    record.data_wait_fraction = 0.5;
    if (step % 2 == 0)
      record.eval["accuracy"] = 0.25 * double(step);
    Status status = log->write(record);
    if (status.ok())
      status = events->write(record);
    if (!status.ok())
      return status;
  }
  return Status();
}

int main(int count, char **words) {
  if (count != 2)
    return 2;
  Status status = writeRun(words[1], 1, 5, {});
  if (status.ok())
    status = writeRun(words[1], 4, 6, 300);
  if (!status.ok())
    std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
