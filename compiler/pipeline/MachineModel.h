//===- MachineModel.h - What a device can do --------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_MACHINEMODEL_H
#define PARTITA_COMPILER_PIPELINE_MACHINEMODEL_H

#include "dialects/nn/NNInterfaces.h"

namespace partita::pipeline {

/// Rates of one device, by which stages are balanced and times are predicted.
/// Only ratios matter for the balance. The defaults are those of one core with
/// AVX-512 at about 3 GHz.
struct MachineModel {
  std::string cpu;     ///< name of the processor; empty: one in general
  int64_t threads = 0; ///< cores a device; 0: any
  double contractionFlops = 150e9; ///< a second: dot, conv
  double attentionFlops = 90e9;
  double pointwiseFlops = 8e9;
  double reductionFlops = 8e9;
  double bytes = 12e9; ///< read and written, a second
  double transferLatencyNs = 2000;
  double transferBytes = 8e9;  ///< a second
  double instructionNs = 1500; ///< to start one kernel or library call
  double unitNs = 2000;        ///< to start one unit

  /// Time of `flops` operations of one kind.
  double computeNs(nn::CostKind kind, int64_t flops) const;
  /// Time of ops that are computed as one kernel or call: what they compute, or
  /// the bytes that they read from and write to memory, whichever is longer.
  /// Only the ops' region-free costs and `memoryBytes` count.
  double clusterNs(llvm::ArrayRef<mlir::Operation *> ops,
                   int64_t memoryBytes) const;
  double transferNs(int64_t bytes) const;
};

/// Operations of `ops`, together.
int64_t countFlops(llvm::ArrayRef<mlir::Operation *> ops);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_MACHINEMODEL_H
