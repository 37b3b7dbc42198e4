//===- Checkpoint.h - States of a training on the disk ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A run has a folder, and a checkpoint is a folder in it:
//
//   run/step-00000120/model.safetensors      parameters and statistics
//                     optimizer.safetensors  the optimizer's states, counters
//                     trainer.json           TrainerFile.h; written last
//
// It appears in one step, when all of it is on the disk. So a process may be
// killed, or the machine lose power, at any time: what has the name of a
// checkpoint is whole. `.partial-...` is one that was being written, and
// `.removed-...` one that was being removed; the next save removes both.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAIN_CHECKPOINT_H
#define PARTITA_RUNTIME_TRAIN_CHECKPOINT_H

#include "runtime/base/Status.h"
#include "runtime/io/Tensor.h"
#include "runtime/train/Content.h"
#include "runtime/train/DiskCalls.h"
#include "runtime/train/TrainerFile.h"

#include <cstdint>
#include <string>
#include <vector>

namespace partita::runtime::train {

enum class Role {
  parameter, ///< the optimizer changes it
  statistic, ///< of the model, changed by its steps: a running mean
  optimizer, ///< a moment of a parameter
  counter    ///< of the optimizer: how many steps it took
};

/// A state to save. Parameters and statistics have names of their own, and so
/// have optimizer's states and counters.
struct State {
  std::string name;
  Role role = Role::parameter;
  abi::DType dtype = abi::DType::f32;
  std::vector<int64_t> shape;
  const void *bytes = nullptr; ///< elements, dense and row-major
  Content::Fetch fetch = {};   ///< instead of `bytes`: when they are written
};

struct LoadedState {
  std::string name;
  Role role = Role::parameter;
  Tensor tensor; ///< refers to the mapped file
};

struct Checkpoint {
  std::string folder;
  Progress progress;
  std::vector<LoadedState> states;
  /// For people: why newer checkpoints were passed over, a line each.
  std::vector<std::string> skipped;
};

/// Which checkpoints a save leaves.
struct Retention {
  int last = 3;       ///< the newest, at least 1
  std::string metric; ///< the best by this is kept as well; empty: none is
  bool larger_is_better = false;
};

/// The checkpoints of one run. Only one process may save at a time.
class CheckpointFolder {
public:
  explicit CheckpointFolder(std::string folder, Retention retention = {},
                            DiskCalls &calls = systemCalls);

  /// Fails if there is a checkpoint of a later step than `step`: training would
  /// go on from an older one, and two histories would mix. To be asked before
  /// training starts; `save` asks, too.
  Status maySaveAfter(int64_t step) const;

  /// Saves the states in `step-<progress.step>`, and makes the run's folder if
  /// it is missing. A checkpoint of the same step is replaced. Others are
  /// removed only when the new one is on the disk. After an error all
  /// checkpoints that were there can be loaded, unless the message says that
  /// the new one is saved.
  Status save(const Progress &progress, const std::vector<State> &states);

  /// The newest whole checkpoint. One whose files are damaged is passed over,
  /// and said so in `skipped`. It is an error if none is whole, or if the
  /// newest whole one has another identity: the message says whether model or
  /// set-up differ.
  Expected<Checkpoint> loadNewest(const Identity &identity) const;

  /// Steps of which there are checkpoints, ascending.
  Expected<std::vector<int64_t>> steps() const;

private:
  Status write(const std::string &folder, const Progress &progress,
               const std::vector<State> &states) const;
  Status publish(const std::string &partial, const std::string &name) const;
  Status removeLeftovers() const;
  Status removeOld(int64_t newest) const;
  Status remove(const std::string &name) const;
  std::string path(const std::string &name) const;

  std::string folder;
  Retention retention;
  DiskCalls &calls;
};

/// Loads the checkpoint in `folder` and compares all its bytes with the hashes
/// in trainer.json. An error names the file that is missing, truncated or
/// changed, or says whether model or set-up differ from `identity`.
Expected<Checkpoint> loadCheckpoint(const std::string &folder,
                                    const Identity &identity);

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAIN_CHECKPOINT_H
