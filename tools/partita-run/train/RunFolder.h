//===- RunFolder.h - What a training keeps ----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_TRAIN_RUNFOLDER_H
#define PARTITA_TOOLS_PARTITA_RUN_TRAIN_RUNFOLDER_H

#include "runtime/train/Checkpoint.h"
#include "runtime/train/EventFile.h"
#include "runtime/train/TrainLog.h"
#include "runtime/trainer/Trainer.h"

#include <memory>
#include <optional>
#include <string>

namespace partita::run {

/// Checkpoints and logs of a training in one folder.
class RunFolder {
public:
  /// `trainer` must outlive the object. `keep`: checkpoints that stay.
  /// `metric`: the best by it stays as well; empty: none does.
  /// `data`: what else must be the same to go on, as text.
  RunFolder(runtime::train::Trainer &trainer, const std::string &folder,
            int keep, const std::string &metric, std::string data);

  /// Loads the newest whole checkpoint into the trainer, and returns where its
  /// training was. `seed` must be that of the checkpoint.
  runtime::Expected<runtime::train::Progress> resume(uint64_t seed);
  /// Opens the logs. To be called after `resume`, before the first step. Fails
  /// if the folder has checkpoints of later steps.
  runtime::Status begin();
  runtime::Status save(const runtime::train::Progress &progress);
  runtime::Status write(const runtime::train::TrainRecord &record);

private:
  runtime::train::Identity identity() const;
  runtime::Status setDamagedAside(int64_t newest);

  runtime::train::Trainer &trainer;
  const std::string folder, data;
  runtime::train::CheckpointFolder checkpoints;
  std::optional<runtime::train::TrainLog> log;
  std::optional<runtime::train::EventFile> events;
};

/// Whether `exportTrained` can be expected to work, before training begins.
runtime::Status checkExport(const runtime::train::Trainer &trainer,
                            const std::string &artifact,
                            const std::string &output);

/// Writes the trained parameters into a copy of the model that was compiled.
/// `artifact`: the path of the trainer's artifact.
runtime::Status exportTrained(const runtime::train::Trainer &trainer,
                              const std::string &artifact,
                              const std::string &output);

/// Loads parameters of a file of safetensors by their names.
runtime::Status loadWeights(runtime::train::Trainer &trainer,
                            const std::string &path);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_TRAIN_RUNFOLDER_H
