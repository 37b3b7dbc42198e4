//===- PartitionOptions.h - What is said of the partition -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_DRIVER_PARTITIONOPTIONS_H
#define PARTITA_COMPILER_DRIVER_PARTITIONOPTIONS_H

#include "mlir/IR/Location.h"

#include <string>
#include <vector>

namespace partita::driver {

/// The user's choices about the partition. If a choice is not given, the
/// partition file decides, and then the compiler.
struct PartitionOptions {
  int devices = 0; ///< in all; 0: as the file or the model says, or else 1
  /// "NAME=SIZE": the axes of the mesh, in order, as another plan of the model
  /// has them; empty: as the file and the numbers below say.
  std::vector<std::string> axes;
  int dataParallel = 0;      ///< replicas; 0: not given
  int replicas = 0;          ///< that share a micro-batch; 0: not given
  int tensorParallel = 0;    ///< devices that share tensors; 0: not given
  bool reproducible = false; ///< no number depends on how tensors are cut
  int zero = -1; ///< what replicas share of a training; -1: not given;
                 ///< kAutoZero: what fits is chosen
  int64_t fusionBytes = -1; ///< of gradients that replicas add up at once, at
                            ///< most; 0: each alone; -1: not given
  int stages = 0;           ///< that the planner cuts; 0: the schedule's choice
  int microBatches = 0;     ///< 0: not given
  int64_t workspaceMiB = 0; ///< scratch of a library call; 0: not given
  std::string schedule;     ///< its name (compiler/schedule); empty: not given
  int64_t memory = 0;       ///< bytes that a device has; 0: not given
  int memoryTry = 0;        ///< see --dist-assign-stages
  bool wholeNodes = false;  ///< the same
  std::string file;         ///< partition file to read; empty: none
  std::string recompute;    ///< see --dist-recompute; empty: nothing
  std::vector<std::string> recomputeNodes; ///< the same
  std::string machine; ///< file that partita-run --calibrate wrote
  int threads = 0;     ///< cores per device; 0: an equal share
  std::string target;  ///< kind of the devices; empty: CPUs
  /// The target of each device, if they are of several kinds; empty: not given.
  std::vector<std::string> targets;
  std::string emitFile; ///< where to write the whole decision; empty: nowhere
};

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

} // namespace partita::driver

#endif // PARTITA_COMPILER_DRIVER_PARTITIONOPTIONS_H
