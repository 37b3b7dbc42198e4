//===- MachineModel.h - Predicted times on a device -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_COST_MACHINEMODEL_H
#define PARTITA_COMPILER_PIPELINE_COST_MACHINEMODEL_H

#include "compiler/analysis/Rates.h"
#include "compiler/codegen/DeviceRates.h"
#include "compiler/pipeline/cost/MachineFile.h"
#include "dialects/nn/NNDialect.h"

#include "mlir/IR/Location.h"

#include <memory>
#include <optional>

namespace partita::codegen {
class Backend;
} // namespace partita::codegen

namespace partita::pipeline {

/// Ops that are computed as one kernel or library call, and the bytes that they
/// touch.
struct ClusterWork {
  llvm::ArrayRef<mlir::Operation *> ops;
  nn::ClusterKind kind = nn::ClusterKind::kernel; ///< what computes them
  int64_t bytes = 0; ///< read from and written to memory
  /// The part of `bytes` that belongs to the model's outputs. Each micro-batch
  /// has outputs of its own.
  int64_t outputBytes = 0;
  /// The rates of the values in and around the cluster.
  analysis::Rates &rates;
};

/// The bytes that a step touches besides those of the work. They decide how
/// much of the work's data is still in a cache when it begins.
struct StepFootprint {
  int64_t weightBytes = 0;
  int64_t mostBytes = 0;   ///< the most that a cluster touches, without outputs
  int64_t outputBytes = 0; ///< the model's, of all micro-batches
  /// The part of its time that a device waits for memory.
  double memoryShare = 0;
};

/// Predicted time of a cluster.
struct ClusterTime {
  double ns = 0;
  double modelledNs = 0; ///< by rates alone, without measured work
  double memoryNs = 0;   ///< the part of `modelledNs` that waits for memory
  uint64_t key = 0; ///< of the work (WorkKey.h); 0: no machine was measured
};

/// The rates of one device. Stages are balanced and times are predicted with
/// them. They come from a file that was measured on the machine that will run
/// the plan. The machine that compiles does not matter.
///
/// Devices that are cores of the processor have tables of rates. Without a file
/// they are those of one core with AVX-512 at about 3 GHz. The file may also
/// hold the measured and the predicted time of the same work. Then the
/// prediction is multiplied by their ratio.
///
/// Other devices have a few figures (codegen::DeviceRates), and their backend
/// says what these make of an op. Without a file, or if it says nothing of
/// their kind, they are published figures of the target's usual device.
class MachineModel {
public:
  /// Reads `path` (empty: the default rates) for `devices` devices of a target
  /// (Backend.h), with `threads` cores each (0: an equal share of those there
  /// are). Fails with a diagnostic at `loc`.
  static mlir::FailureOr<MachineModel> load(mlir::Location loc,
                                            llvm::StringRef path,
                                            int64_t devices, int64_t threads,
                                            llvm::StringRef target = "cpu");

  /// The processor or the device; empty: a processor in general.
  llvm::StringRef getName() const;
  /// The number of cores of the whole machine; 0: any number.
  int64_t getCores() const;
  /// The id of the measurements; empty: there are none.
  llvm::StringRef getId() const;
  /// The number of cores of a device for which the times hold; 0: any.
  int64_t getThreads() const { return rates ? 0 : threads; }
  /// Whether the figures are published ones although there is a file.
  bool lacksDevice() const { return rates && file && !isMeasured; }

  /// Whether devices of this kind see each other's memory: cores of a machine.
  bool sharesMemory() const { return !rates; }

  ClusterTime getClusterTime(const ClusterWork &work,
                             const StepFootprint &step) const;
  /// The time to transfer a value to another device of the same target.
  double getTransferNs(int64_t bytes) const;
  /// The same to a device of another model. Between a processor and another
  /// device bytes go through the host's memory.
  double getTransferNs(int64_t bytes, const MachineModel &to) const;
  /// The time of a collective of `devices` devices, each of which sends
  /// `sentBytes` bytes.
  double getCollectiveNs(int64_t sentBytes, int64_t devices) const;
  double getUnitNs() const;
  /// The time that the launch of a kernel adds to each cluster; 0 if it is not
  /// told apart.
  double getLaunchNs() const { return rates ? rates->launch : 0; }

private:
  const MeasuredTable *findTable(llvm::StringRef name) const;

  std::shared_ptr<const MachineFile> file;
  const codegen::Backend *backend = nullptr;
  std::optional<codegen::DeviceRates> rates; ///< none: by the tables of teams
  bool isMeasured = false;                   ///< the file says `rates`
  int64_t threads = 0, devices = 1;
};

/// The sum of the operations of `ops`.
int64_t countFlops(llvm::ArrayRef<mlir::Operation *> ops);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_COST_MACHINEMODEL_H
