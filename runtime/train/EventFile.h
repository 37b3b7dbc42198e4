//===- EventFile.h - Curves for TensorBoard ---------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file of records, as TensorFlow frames them:
//
//   u64  bytes of the message, little-endian
//   u32  masked CRC-32C of these eight bytes
//   the message: an `Event`, of protobuf
//   u32  masked CRC-32C of the message
//
// The tags are "loss", "epoch", "learning_rate", "gradient_norm",
// "samples_per_second", "data_wait_fraction" and "eval/NAME". Values are floats
// of 32 bits.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAIN_EVENTFILE_H
#define PARTITA_RUNTIME_TRAIN_EVENTFILE_H

#include "runtime/train/TrainLog.h"

#include <string_view>

namespace partita::runtime::train {

/// CRC-32C (Castagnoli) of the bytes: 0xe3069283 for "123456789".
uint32_t crc32c(std::string_view bytes);

class EventFile {
public:
  /// Makes `events.out.tfevents.<time>.<host>` in the folder, which must be
  /// there. A training that goes on says after how many steps: TensorBoard
  /// drops what older files have of later ones.
  static Expected<EventFile> create(const std::string &folder,
                                    std::optional<int64_t> after = {});
  /// Adds the values of a step, with the time of day.
  Status write(const TrainRecord &record);
  const std::string &path() const { return name; }

private:
  EventFile(std::string name, std::unique_ptr<AppendedFile> file)
      : name(std::move(name)), file(std::move(file)) {}
  std::string name;
  std::unique_ptr<AppendedFile> file;
};

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAIN_EVENTFILE_H
