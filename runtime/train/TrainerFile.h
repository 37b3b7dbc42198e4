//===- TrainerFile.h - Where a training stands, as a file -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `trainer.json` of a checkpoint:
//
//   {"partita_checkpoint": 1, "step": 120, "seed": 7,
//    "data": {"epoch": 3, "sample": 512},
//    "model": "00f3c21d9a5be871", "setup": "0123456789abcdef",
//    "setup_text": "{...}\norder shuffled",
//    "metrics": {"accuracy": 0.91, "loss": 0.25},
//    "files": {"model.safetensors": {"bytes": 2672, "xxh3": "..."}, ...}}
//
// `setup_text` may be missing. A metric that is no finite number is the text
// "nan", "inf" or "-inf".
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAIN_TRAINERFILE_H
#define PARTITA_RUNTIME_TRAIN_TRAINERFILE_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace partita::runtime::train {

/// What must be the same for a training to go on.
struct Identity {
  uint64_t model = 0; ///< hash of the compiled model
  uint64_t setup = 0; ///< hash of what else decides the numbers of a step
  /// What `setup` is the hash of, to say what differs: a JSON object, then
  /// lines of a name and a value. Empty: not known.
  std::string setup_text = {};
  /// Of an identity that is asked for: any set-up will do.
  bool any_setup = false;

  bool operator==(const Identity &other) const {
    return model == other.model && setup == other.setup;
  }
};

/// "learning_rate.0 is 0.1 there and 0.2 here", of the first `most` that
/// differ; empty if nobody knows.
std::string describeDifference(const Identity &found, const Identity &expected,
                               size_t most = 3);

struct Progress {
  int64_t step = 0; ///< steps done
  uint64_t seed = 0;
  int64_t epoch = 0;  ///< of the next sample
  int64_t sample = 0; ///< the next sample's position in its epoch
  Identity identity;
  std::map<std::string, double> metrics; ///< names in UTF-8
};

struct StoredFile {
  uint64_t bytes = 0;
  uint64_t hash = 0; ///< contentHash

  bool operator==(const StoredFile &) const = default;
};

struct TrainerFile {
  Progress progress;
  std::map<std::string, StoredFile> files;

  /// The file's text. An error says what cannot be written: a negative step or
  /// position, or a metric's name that is not UTF-8.
  Expected<std::string> json() const;

  /// Reads the text that `json` wrote. The message of an error goes on after
  /// the file's name: "is of another version: ...".
  static Expected<TrainerFile> parse(std::string_view text);
};

/// The most bytes of `setup_text` that are written.
constexpr size_t kMostSetupBytes = 1 << 16;
/// The most bytes of the text that are read.
constexpr size_t kMostTrainerBytes = 1 << 20;

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAIN_TRAINERFILE_H
