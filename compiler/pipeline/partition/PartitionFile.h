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
//     B4: "decoder.layer.[0-3]"   # and of modules, with all their nodes
//   begin_blocks:                 # the node and all after it, to the next one
//     B3: "/fc1/Gemm"             # that no glob names; or a module, from its
//                                 # first node on
//   auto_stage: same_as_device    # or auto_increment: each block a stage
//   stages: [[B1], [B2, B3]]      # blocks of each stage
//   devices: [0, 1]               # device of each stage
//   schedule: fill_drain          # or sequential, looped
//   micro_batches: 8
//   memory: 512MiB                # of each device
//   mesh: {data: 2, stage: 2, tensor: 2}   # axes of the devices, outermost
//   first data_parallel: 2              # the same as an axis "data" of 2
//   tensor_parallel: 2            # the same as an axis "tensor" of 2
//   shard:                        # by dimension: null, an axis, or a list of
//   axes
//     "fc*.weight": [tensor, null]         # globs over weights and inputs
//     "qkv.weight": [null, {tensor: 3}]    # 3 equal parts, each cut along the
//     axis
//
// With a mesh, `devices` counts along its axis "stage".
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

#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace partita::pipeline {

/// The planner cuts a model into no more stages.
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
  std::optional<FileText> begin; ///< a node or module, besides the globs
};

struct FileAxis {
  FileText name;
  int64_t size = 1;
};

/// How a dimension is cut: into `blocks` equal parts, each along the axes.
struct FileShardDim {
  std::vector<FileText> axes; ///< none: it is whole
  int64_t blocks = 1;
};

struct FileShard {
  FileText tensors; ///< glob
  std::vector<FileShardDim> dims;
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
  std::vector<FileAxis> mesh;    ///< outermost first
  std::optional<FileAxis> dataParallel, tensorParallel;
  std::vector<FileShard> shards;
};

using FileErrorFn =
    llvm::function_ref<void(int line, int column, const std::string &message)>;

/// Reads the text of a partition file. Checks everything that can be checked
/// without a model: keys, kinds of values, names of schedules,
/// that stages name blocks of the file, each once, and that there is a device
/// for each stage. Calls `error` once and fails otherwise.
mlir::FailureOr<PartitionFile> parsePartitionFile(llvm::StringRef text,
                                                  FileErrorFn error);

/// The same of a file; an empty path is a file that says nothing. Errors are
/// diagnostics that name it.
mlir::FailureOr<PartitionFile> readPartitionFile(mlir::Location loc,
                                                 llvm::StringRef path);

/// What the schedule `sequential` was called.
inline constexpr llvm::StringLiteral kFormerSequential = "sharded";

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PARTITION_PARTITIONFILE_H
