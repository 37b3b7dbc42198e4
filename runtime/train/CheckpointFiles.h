//===- CheckpointFiles.h - The files of one checkpoint ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAIN_CHECKPOINTFILES_H
#define PARTITA_RUNTIME_TRAIN_CHECKPOINTFILES_H

#include "runtime/train/Checkpoint.h"

namespace partita::runtime::train {

/// Writes the files into the new, empty `folder`, each to the disk.
Status writeCheckpointFiles(DiskCalls &calls, const std::string &folder,
                            const Progress &progress,
                            const std::vector<State> &states);

/// Reads trainer.json alone.
Expected<TrainerFile> readTrainerFile(const std::string &folder);

/// Reads all files, compared with their hashes. `skipped` stays empty.
Expected<Checkpoint> readCheckpointFiles(const std::string &folder);

/// Which of the two differ, and what to do; success if none does.
Status compareIdentity(const Checkpoint &checkpoint, const Identity &expected);

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAIN_CHECKPOINTFILES_H
