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

/// The targets of the devices: those that were said of each, or that of all.
std::vector<std::string> getTargets(const CompileOptions &options,
                                    llvm::ArrayRef<std::string> targets);

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
