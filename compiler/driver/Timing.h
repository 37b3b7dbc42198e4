//===- Timing.h - Where compile time goes -----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_DRIVER_TIMING_H
#define PARTITA_COMPILER_DRIVER_TIMING_H

#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace partita::driver {

/// The wall-clock time of the parts of a compilation, one after another, and of
/// passes, all runs together.
class Timing {
public:
  /// A part begins, and ends the one before.
  void begin(llvm::StringRef part);
  /// The last part ends.
  void end();

  /// Takes the time of passes. The timing must outlive it.
  std::unique_ptr<mlir::PassInstrumentation> watchPasses();

  /// A table of the parts, then of the passes that took longest.
  void print(llvm::raw_ostream &out) const;

private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    double seconds = 0;
    int runs = 0;
  };
  /// By name, in the order in which they began.
  using Entries = std::vector<std::pair<std::string, Entry>>;
  static void add(Entries &entries, llvm::StringRef name, double seconds);
  struct PassWatch;

  Entries parts, passes;
  std::string part; ///< that runs; empty: none
  Clock::time_point since;
};

} // namespace partita::driver

#endif // PARTITA_COMPILER_DRIVER_TIMING_H
