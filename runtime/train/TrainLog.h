//===- TrainLog.h - How a training goes, for people and tools ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file of lines, each an object of JSON:
//
//   {"step": 120, "epoch": 3, "loss": 0.25, "learning_rate": 0.001,
//    "samples_per_second": 812.5, "data_wait_fraction": 0.02,
//    "eval": {"accuracy": 0.91}}
//
// What was not measured is missing. A number that is not finite is the text
// "nan", "inf" or "-inf". A training that goes on from a checkpoint adds lines;
// where a step is there twice, the later line counts.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAIN_TRAINLOG_H
#define PARTITA_RUNTIME_TRAIN_TRAINLOG_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace partita::runtime::train {

struct TrainRecord {
  int64_t step = 0;
  int64_t epoch = 0;
  std::optional<double> loss;
  std::optional<double> learning_rate;
  std::optional<double> samples_per_second;
  std::optional<double> data_wait_fraction; ///< of the time, 0 to 1
  std::map<std::string, double> eval;       ///< metrics; names in UTF-8
  std::optional<double> gradient_norm;      ///< before it was clipped
};

/// The line, with its end. Fails for a name that is not UTF-8.
Expected<std::string> logLine(const TrainRecord &record);

/// A file to whose end whole records are written, so that a reader sees them at
/// once. What a full disk cut off is taken back.
class AppendedFile {
public:
  ~AppendedFile();
  AppendedFile(const AppendedFile &) = delete;
  AppendedFile &operator=(const AppendedFile &) = delete;

  /// `flags` of open(2), beside those that writing at the end needs.
  static Expected<std::unique_ptr<AppendedFile>> open(const std::string &path,
                                                      int flags);
  Status append(std::string_view bytes);
  /// Removes what follows the last end of a line.
  Status cutToLine();

private:
  AppendedFile(std::string path, int file)
      : path(std::move(path)), file(file) {}
  std::string path;
  int file;
};

class TrainLog {
public:
  /// Goes on with the file, or makes it. Half a line at its end, from a process
  /// that was killed, is removed.
  static Expected<TrainLog> open(const std::string &path);
  /// Adds a line. The line is in the file when this returns.
  Status write(const TrainRecord &record);

private:
  explicit TrainLog(std::unique_ptr<AppendedFile> file)
      : file(std::move(file)) {}
  std::unique_ptr<AppendedFile> file;
};

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAIN_TRAINLOG_H
