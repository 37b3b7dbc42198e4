//===- Progress.h - A progress bar on a terminal ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_SHOW_PROGRESS_H
#define PARTITA_TOOLS_PARTITA_RUN_SHOW_PROGRESS_H

#include <chrono>
#include <cstdint>
#include <string>

namespace partita::run {

/// Draws a progress bar on stderr, if that is a terminal, if `enabled`, and if
/// the work takes longer than a moment. The destructor wipes it out.
class Progress {
public:
  Progress(std::string what, int64_t total, bool enabled);
  ~Progress();
  /// `said` stands in front of the time left.
  void update(int64_t done, const char *said = "");
  /// Wipes out the bar, so that a message does not stand behind it.
  static void wipe();

private:
  using Clock = std::chrono::steady_clock;
  std::string what;
  int64_t total;
  bool enabled;
  Clock::time_point begin;
  Clock::time_point last;
};

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_SHOW_PROGRESS_H
