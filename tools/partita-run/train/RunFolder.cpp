//===- RunFolder.cpp - What a training keeps ------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/train/RunFolder.h"

#include "tools/partita-run/Run.h"

#include <filesystem>
#include <system_error>

namespace partita::run {

using namespace runtime::train;
using runtime::Expected;
using runtime::Status;

RunFolder::RunFolder(Trainer &trainer, const std::string &folder, int keep,
                     const std::string &metric, std::string data,
                     bool allowChanges)
    : trainer(trainer), folder(folder),
      checkpoints(trainer, folder,
                  {.last = keep,
                   .metric = metric,
                   .larger_is_better = metric != "eval_loss"},
                  std::move(data), allowChanges) {}

Expected<runtime::train::Progress> RunFolder::resume(uint64_t seed) {
  auto resumed = PARTITA_TRY(checkpoints.resume(seed));
  for (const std::string &line : resumed.remarks)
    if (isFirst(trainer.processes()))
      remark(line);
  return resumed.progress;
}

Status RunFolder::begin() {
  Processes *all = trainer.processes();
  return agree(all, isFirst(all) ? open() : Status());
}

Status RunFolder::open() {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return Status::error("cannot make the folder '" + folder +
                         "': " + error.message());
  PARTITA_TRY(checkpoints.maySave());
  log = PARTITA_TRY(TrainLog::open(folder + "/log.jsonl"));
  events = PARTITA_TRY(EventFile::create(
      folder,
      trainer.steps() > 0 ? std::optional(trainer.steps()) : std::nullopt));
  return Status();
}

Status RunFolder::save(const runtime::train::Progress &progress) {
  return checkpoints.save(progress);
}

Status RunFolder::write(const TrainRecord &record) {
  PARTITA_TRY(log->write(record));
  return events->write(record);
}

} // namespace partita::run
