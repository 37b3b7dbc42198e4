//===- DeviceMesh.h - All devices by their coordinates ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_MODEL_DEVICEMESH_H
#define PARTITA_COMPILER_MODEL_DEVICEMESH_H

#include "dialects/dist/DistDialect.h"

namespace partita {

/// The mesh of all devices of a model's function (`dist.axes`). A device's
/// number is the row-major number of its coordinate.
class DeviceMesh {
public:
  /// `places`: the size of the axis "stage".
  DeviceMesh(mlir::Operation *function, int64_t places);

  /// All axes except "stage"; null if there are no others.
  mlir::ArrayAttr getAxes() const { return axes; }
  /// Devices in all.
  int64_t getSize() const { return size; }
  /// The devices with the coordinate `place` along "stage", in row-major order
  /// of their other coordinates.
  llvm::SmallVector<int64_t> getDevices(int64_t place) const;

private:
  mlir::ArrayAttr axes;
  llvm::SmallVector<int64_t> sizes, strides; ///< of these axes
  int64_t stageStride = 1, size = 1;
};

} // namespace partita

#endif // PARTITA_COMPILER_MODEL_DEVICEMESH_H
