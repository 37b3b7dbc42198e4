//===- Placement.h - Which process runs which device ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_MPI_PLACEMENT_H
#define PARTITA_RUNTIME_COMM_MPI_PLACEMENT_H

#include "runtime/base/Status.h"

#include <string>
#include <vector>

namespace partita::runtime::mpi {

/// The devices of each process of a job. Every device is in one process, and
/// every process has at least one device.
class Placement {
public:
  /// Deals out the devices in their order, as evenly as they divide. The first
  /// processes get one more:
  ///
  ///   5 devices, 2 processes    0,1,2 / 3,4
  ///
  /// Fails if there are more processes than devices.
  static Expected<Placement> even(int devices, int processes);

  /// Reads the devices of each process from a text like "0,3/1-2": processes
  /// are separated by '/', in the order of their ranks, and their devices by
  /// commas; a-b stands for the devices from a to b. The devices of a process
  /// are put into increasing order. Fails if the text is not written so, if it
  /// is not for `processes` processes, or if a device is left out, named twice
  /// or not one of `devices`.
  static Expected<Placement> parse(const std::string &text, int devices,
                                   int processes);

  int processes() const { return int(lists.size()); }
  int devices() const { return int(owners.size()); }
  int processOf(int device) const { return owners[size_t(device)]; }
  /// In increasing order.
  const std::vector<int> &devicesOf(int process) const {
    return lists[size_t(process)];
  }
  /// The place of a device among those of its process.
  int placeOf(int device) const;
  /// The number of devices of the process that has most.
  int mostDevices() const;

  /// "device 3 of process 1, device 4 of process 2"
  std::string text(const std::vector<int> &devices) const;
  /// As `parse` reads it, without ranges: "0,3/1,2".
  std::string text() const;

private:
  Placement(std::vector<std::vector<int>> lists, int devices);

  std::vector<std::vector<int>> lists; ///< by process
  std::vector<int> owners;             ///< by device
};

} // namespace partita::runtime::mpi

#endif // PARTITA_RUNTIME_COMM_MPI_PLACEMENT_H
