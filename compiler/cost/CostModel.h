//===- CostModel.h - Predicted times on a device ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_COST_COSTMODEL_H
#define PARTITA_COMPILER_COST_COSTMODEL_H

#include "compiler/analysis/Rates.h"
#include "dialects/nn/NNDialect.h"

#include "mlir/IR/Location.h"

#include <memory>

namespace partita {

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
  uint64_t key = 0;      ///< of the work; 0: no machine was measured
};

/// The predicted times of devices of one kind. Stages are balanced and
/// collectives are chosen with them. They hold for the machine that will run
/// the plan; the machine that compiles does not matter.
class CostModel {
public:
  virtual ~CostModel() = default;

  /// The processor or the device; empty: a processor in general.
  virtual llvm::StringRef getName() const = 0;
  /// The number of cores of the whole machine; 0: any number.
  virtual int64_t getCores() const { return 0; }
  /// The id of the measurements; empty: there are none.
  virtual llvm::StringRef getId() const { return {}; }
  /// The number of cores of a device for which the times hold; 0: any.
  virtual int64_t getThreads() const { return 0; }
  /// Whether the figures are published ones although there is a file.
  virtual bool lacksDevice() const { return false; }
  /// Whether devices of this kind see each other's memory: cores of a machine.
  virtual bool sharesMemory() const { return false; }

  virtual ClusterTime getClusterTime(const ClusterWork &work,
                                     const StepFootprint &step) const = 0;
  /// The time to transfer a value to another device of the same target.
  virtual double getTransferNs(int64_t bytes) const = 0;
  /// The time to copy bytes from the device to the host's memory, or back.
  virtual double getHostCopyNs(int64_t /*bytes*/) const { return 0; }
  /// The time to transfer a value to a device of another model. Between a
  /// processor and another device bytes go through the host's memory.
  double getTransferNs(int64_t bytes, const CostModel &to) const {
    if (&to == this || (sharesMemory() && to.sharesMemory()))
      return getTransferNs(bytes);
    return getHostCopyNs(bytes) + to.getHostCopyNs(bytes);
  }
  /// The time of a collective of `devices` devices, each of which sends
  /// `sentBytes` bytes.
  virtual double getCollectiveNs(int64_t sentBytes, int64_t devices) const = 0;
  virtual double getUnitNs() const = 0;
  /// The time that the launch of a kernel adds to each cluster; 0 if it is not
  /// told apart.
  virtual double getLaunchNs() const { return 0; }
};

/// The model of `devices` devices of a target (Backend.h), with `threads` cores
/// each (0: an equal share of those there are), by the machine file `path`
/// (empty: usual figures). A file is read once for a context. Fails with a
/// diagnostic at `loc`.
mlir::FailureOr<std::unique_ptr<const CostModel>>
makeCostModel(mlir::Location loc, llvm::StringRef path, int64_t devices,
              int64_t threads, llvm::StringRef target = "cpu");

/// The sum of the operations of `ops`.
int64_t countFlops(llvm::ArrayRef<mlir::Operation *> ops);

} // namespace partita

#endif // PARTITA_COMPILER_COST_COSTMODEL_H
