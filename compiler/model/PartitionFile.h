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
//     B4: "decoder.layer.[0-3]"   # a glob over modules: all of their nodes
//   begin_blocks:                 # the node and those after it that no glob
//     B3: "/fc1/Gemm"             # names, up to the next begin; a module
//                                 # begins at its first node
//   auto_stage: same_as_device    # or auto_increment: each block is a stage
//   stages: [[B1], [B2, B3]]      # blocks of each stage
//   devices: [0, 1]               # device of each stage
//   targets: [cpu, "cuda:sm_90"]  # what each device is
//   schedule: fill_drain          # or sequential, looped
//   micro_batches: 8
//   memory: 512MiB                # of each device
//   mesh: {data: 2, stage: 2, tensor: 2}  # axes of devices, outermost first
//   data_parallel: 2              # the same as an axis "data" of 2
//   tensor_parallel: 2            # the same as an axis "tensor" of 2
//   shard:                        # for each dimension: null, an axis, or a
//                                 # list of axes
//     "fc*.weight": [tensor, null]        # globs over weights and inputs
//     "qkv.weight": [null, {tensor: 3}]   # 3 equal parts, each cut along the
//                                         # axis
//   reproducible: true            # no number depends on how tensors are cut
//   zero: 1                       # replicas share what an optimizer keeps;
//                                 # auto: what is fastest and fits
//   fusion_bytes: 32MiB           # of gradients that replicas add up at once
//
// Along an axis "replica" are replicas that share each micro-batch
// (docs/replicas.md). With a mesh, `devices` has positions along the axis
// "stage", and `targets` an entry for each of them.
//
// Older files have `strategy: sharded` for the schedule that is now called
// sequential, and `strategy: pipelined` for the other schedules.
//
// `*` in a glob also matches `/`. If a node became several operations, `name#2`
// is the third of them.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_MODEL_PARTITIONFILE_H
#define PARTITA_COMPILER_MODEL_PARTITIONFILE_H

#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace partita {

/// The most stages that the planner cuts a model into.
inline constexpr int64_t kMostStages = 4096;

/// A scalar of the file. Messages name its line and column, which count from 1.
struct FileText {
  std::string text;
  int line = 0;
  int column = 0;
};

struct FileBlock {
  FileText name;
  std::vector<FileText> nodes;   ///< globs
  std::optional<FileText> begin; ///< a node or module of `begin_blocks`
};

struct FileAxis {
  FileText name;
  int64_t size = 1;
};

/// How a dimension is cut. It has `blocks` equal parts, and each part is cut
/// along the axes.
struct FileShardDim {
  std::vector<FileText> axes; ///< none: the dimension is whole
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
  std::vector<FileText> targets; ///< by place along the axis "stage"
  std::optional<FileText> strategy;
  std::optional<FileText> schedule;
  std::optional<int64_t> microBatches;
  std::optional<int64_t> memory; ///< bytes
  std::vector<FileAxis> mesh;    ///< outermost first
  std::optional<FileAxis> dataParallel, tensorParallel;
  std::vector<FileShard> shards;
  bool reproducible = false;
  std::optional<int64_t> zero;
  FileText zeroAt;
  std::optional<int64_t> fusionBytes; ///< 0: each parameter's gradient alone
};

using FileErrorFn =
    llvm::function_ref<void(int line, int column, const std::string &message)>;

/// Reads the text of a partition file. Checks everything that does not depend
/// on a model: keys, kinds of values and names of schedules. Stages must name
/// blocks of the file, each once, and each stage must have a device. On an
/// error, calls `error` once and fails.
mlir::FailureOr<PartitionFile> parsePartitionFile(llvm::StringRef text,
                                                  FileErrorFn error);

/// Reads a partition file. An empty path counts as an empty file. Errors are
/// diagnostics that name the file.
mlir::FailureOr<PartitionFile> readPartitionFile(mlir::Location loc,
                                                 llvm::StringRef path);

/// The former name of the schedule `sequential`.
inline constexpr llvm::StringLiteral kFormerSequential = "sharded";

} // namespace partita

#endif // PARTITA_COMPILER_MODEL_PARTITIONFILE_H
