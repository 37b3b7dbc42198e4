//===- PhaseList.h - Which phases make a plan -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_DRIVER_PHASELIST_H
#define PARTITA_COMPILER_DRIVER_PHASELIST_H

#include "compiler/driver/Compile.h"
#include "compiler/driver/PhaseRunner.h"

namespace partita::driver {

/// What is known of a model when its phases are listed.
struct ModelFacts {
  /// It says by annotations how it is split. They are read when its nodes are
  /// what will be computed.
  bool isAnnotated = false;
  int64_t replicas = 1; ///< that share a batch
  size_t targets = 1;   ///< different ones of the devices
};

/// The phases on the whole model, to `--emit nn`.
std::vector<PhaseRun> getModelPhases(const CompileOptions &options,
                                     const ModelFacts &facts);

/// The phases that cut its tensors and decide what is computed together.
std::vector<PhaseRun> getShardPhases(const CompileOptions &options,
                                     const ModelFacts &facts);

/// The phases behind them, as far as `until` says.
std::vector<PhaseRun> getPlanPhases(const CompileOptions &options,
                                    const PartitionOptions &partition,
                                    EmitKind until);

} // namespace partita::driver

#endif // PARTITA_COMPILER_DRIVER_PHASELIST_H
