//===- Pipeline.h - Partition, schedule, memory: the passes -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between the two lists stand `--form-clusters` and `--lower-clusters`:
//
//   addDecisionPasses    nn with clusters  ->  the same, with blocks and stages
//   addCutPasses         that              ->  dist: stages and transfers
//   (codegen)            clusters in stages get their lowering
//   addPlanPasses        dist with lowered clusters  ->  plan
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PIPELINE_H
#define PARTITA_COMPILER_PIPELINE_PIPELINE_H

#include "mlir/Pass/PassManager.h"

#include <string>
#include <vector>

namespace partita::pipeline {

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

/// The number of replicas that share a micro-batch: along the axis "replica" of
/// the mesh. 1 without one. Emits errors for a file that cannot be read.
mlir::FailureOr<int64_t> readReplicas(mlir::Location loc,
                                      const PartitionOptions &options);

/// The different targets of the devices, that of the first device first, as the
/// partition file says them or else the options. Empty: nobody says them.
/// Emits errors for a file that cannot be read.
mlir::FailureOr<std::vector<std::string>>
readTargets(mlir::Location loc, const PartitionOptions &options);

/// The schedule as the options say it or else the partition file, which may be
/// kAutoSchedule (partition/PartitionFile.h). Empty: nobody says it. Emits
/// errors for a file that cannot be read.
mlir::FailureOr<std::string> readSchedule(mlir::Location loc,
                                          const PartitionOptions &options);

/// What replicas share of a training, as the options say it or else the
/// partition file, which may be kAutoZero. -1: nobody says it. Emits errors for
/// a file that cannot be read.
mlir::FailureOr<int> readZero(mlir::Location loc,
                              const PartitionOptions &options);

/// Adds the pass that writes the mesh of all devices, before anything is cut.
void addMeshPasses(mlir::OpPassManager &pm, const PartitionOptions &options);

/// Adds the passes that assign blocks and stages, as attributes.
/// `options.devices` counts those along the axis "stage" of the mesh.
void addDecisionPasses(mlir::OpPassManager &pm,
                       const PartitionOptions &options);

/// Adds the passes that outline the stages and their transfers, after they have
/// decided what is computed again.
void addCutPasses(mlir::OpPassManager &pm, const PartitionOptions &options);

/// Adds the pass that predicts times anew in stages with targets of their own.
void addPricePasses(mlir::OpPassManager &pm, const PartitionOptions &options);

/// Adds both.
void addPartitionPasses(mlir::OpPassManager &pm,
                        const PartitionOptions &options);

/// Adds the passes that schedule units and place memory, in the plan dialect,
/// and then prove that the plan works.
void addPlanPasses(mlir::OpPassManager &pm, const PartitionOptions &options);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PIPELINE_H
