//===- PartitionFile.h - What a partition file says -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A YAML mapping; every key is optional:
//
//   blocks:                       # named sets of ONNX nodes, by globs
//     B1: ["/conv1/*", "/pool1"]
//     B2: ["/conv2/*"]
//   begin_blocks:                 # the node and all after it, to the next one
//     B3: "/fc1/Gemm"
//   auto_stage: same_as_device    # or auto_increment: each block a stage
//   stages: [[B1], [B2, B3]]      # blocks of each stage
//   devices: [0, 1]               # device of each stage
//   schedule: fill_drain          # or sequential, looped
//   micro_batches: 8
//   memory: 512MiB                # of each device
//
// Older files say `strategy: sharded` for what is called sequential now, or
// `strategy: pipelined` for the others.
//
// `*` in a glob also matches `/`. `name#2` is the third operation of a node
// that became several.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PARTITION_PARTITIONFILE_H
#define PARTITA_COMPILER_PIPELINE_PARTITION_PARTITIONFILE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace partita::pipeline {

/// No plan has more devices.
inline constexpr int64_t kMostDevices = 1024;
/// Nor does the planner cut a model into more stages.
inline constexpr int64_t kMostStages = 4096;

/// A scalar of the file with its place (from 1), for messages.
struct FileText {
  std::string text;
  int line = 0;
  int column = 0;
};

struct FileBlock {
  FileText name;
  std::vector<FileText> nodes;   ///< globs
  std::optional<FileText> begin; ///< a node name, instead of globs
};

struct PartitionFile {
  std::vector<FileBlock> blocks; ///< in the order of the file
  std::optional<FileText> autoStage;
  std::optional<std::vector<std::vector<FileText>>> stages;
  std::vector<int64_t> devices;
  FileText devicesAt;
  std::optional<FileText> strategy;
  std::optional<FileText> schedule;
  std::optional<int64_t> microBatches;
  std::optional<int64_t> memory; ///< bytes
};

using FileErrorFn =
    llvm::function_ref<void(int line, int column, const std::string &message)>;

/// Reads the text of a partition file. Checks everything that can be checked
/// without a model: keys, kinds of values, names of schedules,
/// that stages name blocks of the file, each once, and that there is a device
/// for each stage. Calls `error` once and fails otherwise.
mlir::FailureOr<PartitionFile> parsePartitionFile(llvm::StringRef text,
                                                  FileErrorFn error);

/// What the schedule `sequential` was called.
inline constexpr llvm::StringLiteral kFormerSequential = "sharded";

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PARTITION_PARTITIONFILE_H
