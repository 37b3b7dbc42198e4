//===- MemoryFit.h - Plans that devices have room for -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_DRIVER_CHOOSE_MEMORYFIT_H
#define PARTITA_COMPILER_DRIVER_CHOOSE_MEMORYFIT_H

#include "compiler/driver/Compile.h"

namespace partita::driver {

/// Cuts a whole model and goes on to its plan, or as far as `until` says.
/// `isAdvice`: nobody but a message needs the result.
using Partition = llvm::function_ref<mlir::LogicalResult(
    mlir::ModuleOp module, const PartitionOptions &partition, EmitKind until,
    bool isAdvice)>;

/// The fastest stages, if their devices have room for them; else the fastest
/// that fit, or an error that says what would. How much room a device needs is
/// known when its plan is made, so each try goes that far. `targets`: different
/// ones of the devices.
mlir::LogicalResult partitionToFit(mlir::OwningOpRef<mlir::ModuleOp> &module,
                                   const CompileOptions &options,
                                   const std::vector<std::string> &targets,
                                   Partition partition);

/// Plans a model, whole or with cut tensors, by every schedule, and takes the
/// one with the shortest predicted time for a micro-batch whose devices have
/// room. If none has room, it takes the one that needs least, so that the error
/// of its plan says what would fit. Returns all, that one first. Emits nothing.
std::vector<pipeline::TriedPlan> chooseSchedule(mlir::ModuleOp whole,
                                                const CompileOptions &options,
                                                Partition partition);

/// The levels of `--zero` of which `auto` takes one, as it found them.
struct ZeroChoice {
  int level = 0;
  std::vector<pipeline::TriedPlan> tried; ///< in their order
};

/// Plans the model that learns with every level, and takes the one with the
/// shortest predicted step whose devices have room; of equal ones, that which
/// needs less memory. If none has room, it takes the one that needs least, so
/// that the error of its plan says what would fit. Emits nothing.
ZeroChoice chooseZero(mlir::MLIRContext &context, const CompileOptions &learns,
                      const std::vector<std::string> &targets);

/// The lowest level above the one of the options whose devices have room; none
/// where there is none, or nothing is shared. For advice: emits nothing.
std::optional<int> findZeroThatFits(mlir::MLIRContext &context,
                                    const CompileOptions &learns,
                                    const std::vector<std::string> &targets);

} // namespace partita::driver

#endif // PARTITA_COMPILER_DRIVER_CHOOSE_MEMORYFIT_H
