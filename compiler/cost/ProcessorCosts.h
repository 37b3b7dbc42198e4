//===- ProcessorCosts.h - Predicted times on cores --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_COST_PROCESSORCOSTS_H
#define PARTITA_COMPILER_COST_PROCESSORCOSTS_H

#include "compiler/cost/CostModel.h"
#include "compiler/cost/MachineFile.h"

namespace partita::codegen {
class Backend;
} // namespace partita::codegen

namespace partita {

/// Devices that are cores of the processor. They have tables of times, which a
/// file holds that was measured; without one, the speeds of one core with
/// AVX-512 at about 3 GHz. The file may also hold the measured and the
/// predicted time of the same work. Then the prediction is multiplied by their
/// ratio.
class ProcessorCosts final : public CostModel {
public:
  /// `file` may be null. `threads` of 0 are an equal share of the file's cores.
  ProcessorCosts(const codegen::Backend &backend,
                 std::shared_ptr<const MachineFile> file, int64_t devices,
                 int64_t threads);

  llvm::StringRef getName() const override;
  int64_t getCores() const override;
  llvm::StringRef getId() const override;
  int64_t getThreads() const override { return threads; }
  bool sharesMemory() const override { return true; }
  ClusterTime getClusterTime(const ClusterWork &work,
                             const StepFootprint &step) const override;
  using CostModel::getTransferNs;
  double getTransferNs(int64_t bytes) const override;
  double getCollectiveNs(int64_t sentBytes, int64_t devices) const override;
  double getUnitNs() const override;

private:
  const MeasuredTable *findTable(llvm::StringRef name) const;

  const codegen::Backend &backend;
  const std::shared_ptr<const MachineFile> file;
  const int64_t devices;
  int64_t threads;
};

} // namespace partita

#endif // PARTITA_COMPILER_COST_PROCESSORCOSTS_H
