//===- MachineSpeeds.h - Measured speeds, and their file --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// The file that `partita-run --calibrate` writes and `partita-compile
// --machine` reads is JSON:
//
//   {"partita_machine": 4, "id": "...", "cpu": "...", "cores": 2,
//    "level": "x86-64-v4",
//    "teams": [{"threads": 1, "tables": {
//       "dot": {"unit": "GFLOP/s", "axes": {"rows": [...], ...},
//               "values": [...]}, ...},
//       "work": {"1": {"...": [..., ...], ...}}}, ...],
//    "devices": [{"kind": "...", "architecture": "...", "name": "...",
//                 "rates": {"processors": 132, ...}}, ...]}
//
// `values` are row-major, the last axis fastest; a table without axes has one
// value. `runtime/abi/machine.h` defines the names of tables, axes and speeds,
// and `id` and `work`. A machine without other devices has no `devices`.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_CALIBRATE_MACHINESPEEDS_H
#define PARTITA_RUNTIME_CALIBRATE_MACHINESPEEDS_H

#include "runtime/base/Status.h"
#include "runtime/device/DeviceFigures.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace partita::runtime {

struct RateAxis {
  std::string name;
  std::vector<double> at; ///< ascending
};

struct RateTable {
  std::string name, unit;
  std::vector<RateAxis> axes;
  std::vector<double> values; ///< row-major; 0: not measured

  RateTable(std::string name, std::string unit,
            std::vector<RateAxis> axes = {});
  /// The position of value `index` along every axis.
  std::vector<size_t> position(size_t index) const;
  double coordinate(size_t index, size_t axis) const {
    return axes[axis].at[position(index)[axis]];
  }
  /// Fills in points that were too large to measure. Each gets the mean rate of
  /// its smaller neighbours, because speeds no longer grow there.
  void fill();
};

/// The measured time of the work with one key, and the time that the tables
/// predict, in ns. Both are sums over one step.
struct WorkTime {
  double ns = 0, modelledNs = 0;
};

struct TeamSpeeds {
  int threads = 1;
  std::vector<RateTable> tables;
  /// By the number of busy devices, then by key.
  std::map<int, std::map<uint64_t, WorkTime>> work;

  /// The size of the working set that is read at `rate` (GB/s), by the table
  /// `read`. If even the largest measured set is read faster, its size.
  double bytesReadAt(double rate) const;
};

struct MachineSpeeds {
  std::string id; ///< as read from a file; `json` computes it from the tables
  std::string cpu, level;
  int cores = 1;
  std::vector<TeamSpeeds> teams;
  std::vector<DeviceFigures> devices;
  /// For people: why some devices were not measured. Not in the file.
  std::vector<std::string> remarks;

  /// The file's text.
  std::string json() const;

  /// Reads the text that `json` wrote. An error says what is wrong.
  static Expected<MachineSpeeds> parse(std::string_view text);
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_CALIBRATE_MACHINESPEEDS_H
