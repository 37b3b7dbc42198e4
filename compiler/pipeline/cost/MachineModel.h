//===- MachineModel.h - What a device can do --------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_COST_MACHINEMODEL_H
#define PARTITA_COMPILER_PIPELINE_COST_MACHINEMODEL_H

#include "compiler/analysis/Rates.h"
#include "compiler/pipeline/cost/MachineFile.h"
#include "dialects/nn/NNDialect.h"

#include "mlir/IR/Location.h"

#include <memory>

namespace partita::pipeline {

/// Ops that are computed as one kernel or library call, and what they touch.
struct ClusterWork {
  llvm::ArrayRef<mlir::Operation *> ops;
  nn::ClusterKind kind = nn::ClusterKind::kernel; ///< what computes them
  int64_t bytes = 0; ///< read from and written to memory
  /// Of `bytes`, those of the model's outputs: each micro-batch has others.
  int64_t outputBytes = 0;
  /// Of the values in and around the cluster.
  analysis::Rates &rates;
};

/// What a step touches besides the work in question, which decides how much of
/// it is still in a cache when the work begins.
struct StepFootprint {
  int64_t weightBytes = 0;
  int64_t mostBytes = 0;   ///< of the cluster that touches most, but outputs
  int64_t outputBytes = 0; ///< the model's, of all micro-batches
  /// The part of its time that a device waits for memory.
  double memoryShare = 0;
};

/// Predicted time of a cluster.
struct ClusterTime {
  double ns = 0;
  double modelledNs = 0; ///< by rates alone, whatever was measured of such work
  double memoryNs = 0;   ///< of `modelledNs`, waiting for what no cache holds
  uint64_t key = 0; ///< of the work (WorkKey.h); 0: no machine was measured
};

/// Rates of one device, by which stages are balanced and times are predicted:
/// those of a file that was measured on the machine that will run the plan, or
/// else those of one core with AVX-512 at about 3 GHz. The machine that
/// compiles has no say. The file may also say how long this very work took when
/// it was measured, and how long the rates predicted. Then the prediction is
/// multiplied by their ratio.
class MachineModel {
public:
  /// Reads `path` (empty: the default rates) for `devices` devices with
  /// `threads` cores each (0: an equal share of those there are). Fails with a
  /// diagnostic at `loc`.
  static mlir::FailureOr<MachineModel> load(mlir::Location loc,
                                            llvm::StringRef path,
                                            int64_t devices, int64_t threads);

  /// The processor; empty: one in general.
  llvm::StringRef getCpu() const;
  /// Of the measurements; empty: there are none.
  llvm::StringRef getId() const;
  /// Cores a device for which times hold; 0: any.
  int64_t getThreads() const { return threads; }

  ClusterTime getClusterTime(const ClusterWork &work,
                             const StepFootprint &step) const;
  /// A value from one device to another.
  double getTransferNs(int64_t bytes) const;
  /// A collective in which each device sends so many bytes.
  double getCollectiveNs(int64_t sentBytes) const;
  double getUnitNs() const;

private:
  std::shared_ptr<const MachineFile> file;
  int64_t threads = 0, devices = 1;
};

/// Operations of `ops`, together.
int64_t countFlops(llvm::ArrayRef<mlir::Operation *> ops);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_COST_MACHINEMODEL_H
