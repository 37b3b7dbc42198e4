//===- MachineFile.h - What was measured of a machine -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The file that `partita-run --calibrate` writes; see `runtime/abi/machine.h`.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_COST_MACHINEFILE_H
#define PARTITA_COMPILER_PIPELINE_COST_MACHINEFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <map>
#include <string>
#include <vector>

namespace partita::pipeline {

/// Values over axes, between which they are interpolated.
struct MeasuredTable {
  std::vector<std::vector<double>> axes; ///< ascending coordinates
  std::vector<double> values;            ///< row-major, none below 0

  /// The value at a point: geometrically between its neighbours (where one is
  /// 0, linearly), along axes whose coordinates are taken as logarithms; beyond
  /// an axis, that at its end.
  double at(llvm::ArrayRef<double> point) const;
};

/// The tables of a team of so many threads, and what was measured of the work
/// of models.
struct MeasuredTeam {
  int64_t threads = 1;
  std::map<std::string, MeasuredTable> tables;
  /// How many times as long work took as the tables let expect: by the number
  /// of devices that were busy, then by key (WorkKey.h).
  std::map<int64_t, std::map<uint64_t, double>> work;

  /// That of work with so many devices busy, or else with the least number that
  /// it was measured with; 1 if it never was.
  double getWorkRatio(uint64_t key, int64_t devices) const;

  double at(llvm::StringRef table, llvm::ArrayRef<double> point = {}) const {
    return tables.at(table.str()).at(point);
  }
};

struct MachineFile {
  std::string cpu;
  std::string id; ///< of the tables: other measurements have another
  int64_t cores = 1;
  int64_t lanes = 16;              ///< floats in a vector
  std::vector<MeasuredTeam> teams; ///< ascending threads

  /// Reads and checks a file; every table and axis is there afterwards. The
  /// error says what is wrong and what to do.
  static llvm::Expected<MachineFile> read(llvm::StringRef path);

  /// The team with this many threads, or the largest with fewer.
  const MeasuredTeam &getTeam(int64_t threads) const;
};

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_COST_MACHINEFILE_H
