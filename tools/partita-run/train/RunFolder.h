//===- RunFolder.h - What a training keeps ----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_TRAIN_RUNFOLDER_H
#define PARTITA_TOOLS_PARTITA_RUN_TRAIN_RUNFOLDER_H

#include "runtime/train/EventFile.h"
#include "runtime/train/TrainLog.h"
#include "runtime/trainer/Checkpoints.h"

#include <memory>
#include <optional>
#include <string>

namespace partita::run {

/// Checkpoints and logs of a training in one folder. All processes of the
/// training call the same functions; process 0 writes.
class RunFolder {
public:
  /// `trainer` must outlive the object. `keep`: checkpoints that stay.
  /// `metric`: the best by it stays as well; empty: none does.
  /// `data`: what else must be the same to go on, as text. `allowChanges`: it
  /// need not be, nor set-up and seed.
  RunFolder(runtime::train::Trainer &trainer, const std::string &folder,
            int keep, const std::string &metric, std::string data,
            bool allowChanges);

  /// Loads the newest whole checkpoint into the trainer, and returns where its
  /// training was. `seed` must be that of the checkpoint.
  runtime::Expected<runtime::train::Progress> resume(uint64_t seed);
  /// Opens the logs, in process 0. To be called after `resume`, before the
  /// first step. Fails if the folder has checkpoints of later steps.
  runtime::Status begin();
  runtime::Status save(const runtime::train::Progress &progress);
  /// In process 0.
  runtime::Status write(const runtime::train::TrainRecord &record);

private:
  runtime::Status open();

  runtime::train::Trainer &trainer;
  const std::string folder;
  runtime::train::Checkpoints checkpoints;
  std::optional<runtime::train::TrainLog> log;
  std::optional<runtime::train::EventFile> events;
};

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_TRAIN_RUNFOLDER_H
