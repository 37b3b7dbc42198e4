//===- MachineFile.h - Measured speeds of a machine -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The file that `partita-run --calibrate` writes; see `runtime/abi/machine.h`.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_COST_MACHINEFILE_H
#define PARTITA_COMPILER_COST_MACHINEFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <map>
#include <string>
#include <vector>

namespace partita {

/// Values on a grid, and how to interpolate between them.
struct MeasuredTable {
  std::vector<std::vector<double>> axes; ///< ascending coordinates
  std::vector<double> values;            ///< row-major, none below 0

  /// The interpolated value at a point. The coordinates of all axes are taken
  /// as logarithms. Interpolation between neighbours is geometric, or linear if
  /// one of them is 0. A point beyond the end of an axis has the value at that
  /// end.
  double at(llvm::ArrayRef<double> point) const;
};

/// The tables that were measured with `threads` threads, and the measured work
/// of models.
struct MeasuredTeam {
  int64_t threads = 1;
  std::map<std::string, MeasuredTable> tables;
  /// The ratio of measured time to the time that the tables predict: by the
  /// number of busy devices, then by the key of the work (ClusterTime).
  std::map<int64_t, std::map<uint64_t, double>> work;

  /// The ratio for work with `devices` busy devices, or else with the smallest
  /// number of devices for which it was measured. 1 if the work was not
  /// measured.
  double getWorkRatio(uint64_t key, int64_t devices) const;

  double at(llvm::StringRef table, llvm::ArrayRef<double> point = {}) const {
    return tables.at(table.str()).at(point);
  }
};

/// A device that is no part of the processor, and what it can do: by the names
/// of machine.h.
struct MeasuredDevice {
  std::string kind, architecture, name;
  std::map<std::string, double> speeds;
};

struct MachineFile {
  std::string cpu;
  std::string id; ///< of the tables; every calibration has another
  int64_t cores = 1;
  int64_t lanes = 16;              ///< floats in a vector
  std::vector<MeasuredTeam> teams; ///< ascending threads
  std::vector<MeasuredDevice> devices;

  /// Reads and checks a file. On success every table and axis is present. An
  /// error says what is wrong and what to do.
  static llvm::Expected<MachineFile> read(llvm::StringRef path);

  /// The team with this many threads, or the largest with fewer.
  const MeasuredTeam &getTeam(int64_t threads) const;

  /// The device of that kind and architecture; else the first of that kind,
  /// since the plan will run on this machine all the same. Null if there is
  /// none.
  const MeasuredDevice *findDevice(llvm::StringRef kind,
                                   llvm::StringRef architecture) const;
};

} // namespace partita

#endif // PARTITA_COMPILER_COST_MACHINEFILE_H
