//===- UnitCapture.h - Units as CUDA graphs ---------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each launch of a kernel costs the host microseconds. A graph is launched in
// one call, whatever it holds. So units are captured at load: what they would
// enqueue becomes a graph.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_UNITCAPTURE_H
#define PARTITA_RUNTIME_DEVICE_CUDA_UNITCAPTURE_H

#include "runtime/device/cuda/CudaInstance.h"

namespace partita::runtime::cuda {

/// Captures the units of one device, one after another.
class UnitCapture {
public:
  /// A unit has one graph for each place of its frames. A unit with more places
  /// than this has none.
  static constexpr size_t kMostPlaces = 64;
  /// The most pieces in all graphs of the device. A driver needs some memory of
  /// the GPU for each piece. That memory is not planned.
  static constexpr size_t kMostPieces = 8192;

  explicit UnitCapture(std::shared_ptr<const Gpu> gpu) : gpu(std::move(gpu)) {}

  /// Makes the graphs of a unit, for steps of `micro_batches`, and brings them
  /// to the GPU in the order of `stream`. A unit of one piece gains nothing and
  /// gets none. A unit that cannot be captured gets none either: see `remark`.
  /// What libraries call in units without graphs is loaded, too.
  /// The calling thread must use the GPU.
  Status capture(CudaInstance &unit, int micro_batches, StreamHandle stream);

  /// Which units have no graphs although they have several pieces, and why;
  /// empty: all have.
  std::string remark() const;

private:
  Status loadCalls(CudaInstance &unit);
  std::string limit(size_t pieces, size_t places) const;
  Status record(CudaInstance &unit, Graph &graph, std::string &obstacle);
  Status make(CudaInstance &unit, StreamHandle stream, GraphExec &made,
              std::string &obstacle);

  const std::shared_ptr<const Gpu> gpu;
  Stream recorder; ///< since the first capture
  size_t captured_pieces = 0;
  std::string first_left; ///< the first unit without graphs, and why
  size_t left = 0;        ///< how many there are
};

} // namespace partita::runtime::cuda

#endif // PARTITA_RUNTIME_DEVICE_CUDA_UNITCAPTURE_H
