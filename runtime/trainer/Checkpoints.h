//===- Checkpoints.h - Where a trainer goes on ------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAINER_CHECKPOINTS_H
#define PARTITA_RUNTIME_TRAINER_CHECKPOINTS_H

#include "runtime/train/Checkpoint.h"
#include "runtime/trainer/States.h"

#include <string>
#include <vector>

namespace partita::runtime::train {

struct Resumed {
  Progress progress;
  /// For people: what was passed over, and what became of it, a line each.
  std::vector<std::string> remarks;
};

/// The checkpoints of a trainer in one folder.
class Checkpoints {
public:
  /// `trainer` must outlive the object. `data`: what else must be the same to
  /// go on, as text. `allow_changes`: it need not be, and neither the set-up
  /// and the seed; the remarks say what differs.
  Checkpoints(Trainer &trainer, const std::string &folder, Retention retention,
              std::string data, bool allow_changes = false);

  /// Loads the newest whole checkpoint into the trainer, and says where its
  /// training was. `seed` must be that of the checkpoint, as the set-up.
  /// Damaged checkpoints after it get another name. After an error all states
  /// are as before. All processes of the training read the files.
  Expected<Resumed> resume(uint64_t seed);
  /// The same from the checkpoint that is the folder itself, whole or refused.
  Expected<Resumed> load(uint64_t seed);
  /// Fails if the folder has checkpoints of later steps than the trainer's.
  Status maySave() const;
  /// `progress` without its identity. Process 0 writes the files.
  Status save(const Progress &progress);

private:
  Identity identity() const;
  Expected<std::vector<StateChange>>
  accept(const Expected<Checkpoint> &checkpoint, uint64_t seed) const;
  Expected<Resumed> goOn(const Expected<Checkpoint> &found, uint64_t seed,
                         bool newest);
  void describeChanges(const Progress &found, uint64_t seed,
                       std::vector<std::string> &remarks) const;
  Status setDamagedAside(int64_t newest, std::vector<std::string> &remarks);

  Trainer &trainer;
  const std::string folder, data;
  const bool allow_changes;
  CheckpointFolder checkpoints;
};

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAINER_CHECKPOINTS_H
