//===- Mesh.h - Which devices execute which program -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All programs of a plan are executed on meshes with the same axes. A device's
// position is the row-major number of its coordinate. Along the axis "data"
// devices are replicas, and the micro-batches of a step are dealt out to them.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_BASE_MESH_H
#define PARTITA_RUNTIME_BASE_MESH_H

#include "runtime/abi/plan_generated.h"

#include <vector>

namespace partita::runtime {

class Mesh {
public:
  /// The plan must have been verified.
  explicit Mesh(const abi::Plan &plan);

  /// The number of devices that execute each program.
  int size() const { return count; }
  /// The device (its index in the plan) that executes a program at a position.
  int device(int program, int position = 0) const {
    return devices[static_cast<size_t>(program) * count + position];
  }
  /// The position of a device among those that execute its program.
  int position(int device) const { return positions[device]; }

  int replicas() const { return replica_count; }
  /// The coordinate of a device along the axis "data".
  int replica(int device) const;
  /// Whether the device stores the outputs of its replica: its coordinates
  /// along all axes other than "data" are 0.
  bool stores(int device) const;

  /// All groups of devices of a program that differ only along `axes`. The
  /// devices of a group are in the order of their coordinates.
  std::vector<std::vector<int>> groups(int program,
                                       const std::vector<int> &axes) const;

private:
  int coordinate(int position, size_t axis) const {
    return position / strides[axis] % sizes[axis];
  }

  std::vector<int> sizes, strides; ///< by axis
  int data = -1;                   ///< the axis; -1: there is none
  int count = 1, replica_count = 1;
  std::vector<int> devices;   ///< by program and position
  std::vector<int> positions; ///< by device
};

/// The number of devices in a group along `axes`, and the place of a device in
/// its group.
int groupSize(const abi::Plan &plan, const flatbuffers::Vector<int> &axes);
int placeInGroup(const abi::Plan &plan, int device,
                 const flatbuffers::Vector<int> &axes);

/// Bytes that each device of a collective sends (`abi::sentBytes`).
int64_t sentBytes(const abi::Plan &plan, const abi::Collective &collective);

/// Micro-batches of one step, over all replicas.
int stepMicroBatches(const abi::Plan &plan);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_BASE_MESH_H
