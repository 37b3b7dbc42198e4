//===- DeviceCosts.h - Predicted times on other devices ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_COST_DEVICECOSTS_H
#define PARTITA_COMPILER_COST_DEVICECOSTS_H

#include "compiler/codegen/DeviceSpeeds.h"
#include "compiler/cost/CostModel.h"
#include "compiler/cost/MachineFile.h"

namespace partita::codegen {
class Backend;
} // namespace partita::codegen

namespace partita {

/// Devices beside the processor. They have a few figures (DeviceSpeeds.h), and
/// their backend says what these make of an op. Without a file, or if it says
/// nothing of their kind, they are published figures of the target's usual
/// device.
class DeviceCosts final : public CostModel {
public:
  /// `speeds`: the published ones. `file` may be null.
  DeviceCosts(const codegen::Backend &backend, codegen::DeviceSpeeds speeds,
              const MachineFile *file, llvm::StringRef kind,
              llvm::StringRef architecture);

  llvm::StringRef getName() const override { return speeds.name; }
  bool lacksDevice() const override { return hasFile && !isMeasured; }
  ClusterTime getClusterTime(const ClusterWork &work,
                             const StepFootprint &step) const override;
  using CostModel::getTransferNs;
  double getTransferNs(int64_t bytes) const override;
  double getHostCopyNs(int64_t bytes) const override;
  double getCollectiveNs(int64_t sentBytes, int64_t devices) const override;
  double getUnitNs() const override { return speeds.unit; }
  double getLaunchNs() const override { return speeds.launch; }

private:
  const codegen::Backend &backend;
  codegen::DeviceSpeeds speeds;
  const bool hasFile;
  bool isMeasured = false; ///< the file says `speeds`
};

} // namespace partita

#endif // PARTITA_COMPILER_COST_DEVICECOSTS_H
