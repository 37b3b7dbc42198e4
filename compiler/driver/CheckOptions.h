//===- CheckOptions.h - What options and a model may not be -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_DRIVER_CHECKOPTIONS_H
#define PARTITA_COMPILER_DRIVER_CHECKOPTIONS_H

#include "compiler/driver/Compile.h"

namespace partita::driver {

/// What the options and the partition file say together, before the model is
/// read.
struct PartitionFacts {
  /// Those that share a micro-batch, as the options say it or else the file:
  /// along the axis "replica" of the mesh. 1 without one.
  int64_t replicas = 1;
  /// The different targets of the devices, that of the first device first, as
  /// the file says them or else the options. Empty: nobody says them.
  std::vector<std::string> targets;
  /// As the options say it or else the file, which may be kAutoSchedule
  /// (model/Decision.h). Empty: nobody says it.
  std::string schedule;
  /// What replicas share of a training, as the options say it or else the file,
  /// which may be kAutoZero. -1: nobody says it.
  int zero = -1;
};

/// Emits errors for a file that cannot be read.
mlir::FailureOr<PartitionFacts>
readPartitionFacts(mlir::Location loc, const PartitionOptions &options);

/// Targets must be backends', and architectures of theirs. `targets`: the
/// different ones of the devices, if they were said of each.
mlir::LogicalResult checkTargets(mlir::Location loc,
                                 const CompileOptions &options,
                                 llvm::ArrayRef<std::string> targets);

/// The cores of the machine for which times are predicted; 0 if none was
/// measured. A wrong file should not wait for a large model.
mlir::FailureOr<int64_t> checkMachine(mlir::Location loc,
                                      const CompileOptions &options,
                                      llvm::ArrayRef<std::string> targets);

/// Whether the devices compute products of halves, and derivatives bear them.
mlir::LogicalResult checkPrecision(mlir::Location loc,
                                   const CompileOptions &options,
                                   llvm::ArrayRef<std::string> targets);

/// What cannot be trained, or have its gradients summed, yet.
mlir::LogicalResult checkTraining(mlir::Location loc,
                                  const CompileOptions &options,
                                  llvm::ArrayRef<std::string> targets);

/// Of integers, inputs of the model are scaled.
mlir::LogicalResult checkScales(mlir::ModuleOp module,
                                const CompileOptions &options);

/// Only samples that are independent of each other are padded.
mlir::LogicalResult checkMask(mlir::ModuleOp module,
                              const CompileOptions &options);

} // namespace partita::driver

#endif // PARTITA_COMPILER_DRIVER_CHECKOPTIONS_H
