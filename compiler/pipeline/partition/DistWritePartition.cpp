//===- DistWritePartition.cpp - The decision as a partition file ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/model/Decision.h"
#include "compiler/model/NodeNames.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/partition/BlockPatterns.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "dialects/support/Try.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

namespace partita::pipeline {

#define GEN_PASS_DEF_DISTWRITEPARTITIONPASS
#include "compiler/pipeline/Passes.h.inc"

namespace {

std::string quote(StringRef text) {
  std::string quoted = "\"";
  llvm::raw_string_ostream os(quoted);
  for (unsigned char c : text) {
    if (c == '"' || c == '\\')
      os << '\\' << c;
    else if (c < 0x20 || c == 0x7f)
      os << "\\x" << llvm::format_hex_no_prefix(c, 2);
    else
      os << c;
  }
  return quoted + "\"";
}

struct DistWritePartitionPass
    : impl::DistWritePartitionPassBase<DistWritePartitionPass> {
  using DistWritePartitionPassBase::DistWritePartitionPassBase;

  LogicalResult run(func::FuncOp function) override {
    auto blocks = PARTITA_TRY(describeBlocks(function));
    std::string text;
    llvm::raw_string_ostream os(text);
    write(function, blocks, os);
    std::error_code error;
    llvm::ToolOutputFile output(file, error, llvm::sys::fs::OF_Text);
    if (!error) {
      output.os() << text;
      output.os().flush();
      error = output.os().error();
      output.os().clear_error();
    }
    if (error)
      return emitError(getOperation().getLoc())
             << "cannot write the partition file '" << file
             << "': " << error.message();
    output.keep();
    markAllAnalysesPreserved();
    return success();
  }

private:
  /// On one line, if it fits.
  static void writeGlobs(const std::vector<std::string> &globs,
                         llvm::raw_ostream &os) {
    constexpr size_t kWidth = 100;
    std::vector<std::string> quoted;
    for (const std::string &glob : globs)
      quoted.push_back(quote(glob));
    if (std::string line = llvm::join(quoted, ", "); line.size() <= kWidth) {
      os << " [" << line << "]\n";
      return;
    }
    os << "\n";
    for (const std::string &glob : quoted)
      os << "    - " << glob << "\n";
  }

  void write(func::FuncOp function, const std::vector<BlockPatterns> &blocks,
             llvm::raw_ostream &os) {
    auto writeKey = [&](StringRef key, auto hasEntry, auto writeEntry) {
      if (llvm::any_of(blocks, hasEntry))
        os << key << ":\n";
      for (const BlockPatterns &block : blocks)
        if (hasEntry(block)) {
          os << "  " << quote(block.name) << ":";
          writeEntry(block);
        }
    };
    writeKey(
        "blocks",
        [](const BlockPatterns &block) { return !block.globs.empty(); },
        [&](const BlockPatterns &block) { writeGlobs(block.globs, os); });
    writeKey(
        "begin_blocks",
        [](const BlockPatterns &block) { return block.begin.has_value(); },
        [&](const BlockPatterns &block) {
          os << " " << quote(*block.begin) << "\n";
        });
    SmallVector<std::string> lists;
    for (auto stage : function->getAttrOfType<ArrayAttr>(kStageBlocksAttr)
                          .getAsRange<ArrayAttr>()) {
      SmallVector<std::string> names;
      for (auto block : stage.getAsRange<StringAttr>())
        if (llvm::any_of(blocks, [&](const BlockPatterns &each) {
              return each.name == block.getValue();
            })) // else nothing is left of it
          names.push_back(quote(block.getValue()));
      lists.push_back("[" + llvm::join(names, ", ") + "]");
    }
    if (!blocks.empty())
      os << "stages: [" << llvm::join(lists, ", ") << "]\n";
    os << "devices: [";
    llvm::interleaveComma(getDevices(function), os);
    os << "]\n";
    if (auto targets = function->getAttrOfType<ArrayAttr>(kTargetsAttr)) {
      os << "targets: [";
      llvm::interleaveComma(targets.getAsValueRange<StringAttr>(), os,
                            [&](StringRef target) { os << quote(target); });
      os << "]\n";
    }
    // A file of orders is no part of a partition file.
    os << (function->hasAttr(kOrdersAttr) ? "# --schedule " : "schedule: ")
       << getString(function, dist::kScheduleAttr, "") << "\nmicro_batches: "
       << getInteger(function, dist::kMicroBatchesAttr, 1) << "\n";
    if (int64_t bytes = getInteger(function, kMemoryAttr, 0))
      os << "memory: " << bytes << "B\n";
    if (function->hasAttr(dist::kReproducibleAttr))
      os << "reproducible: true\n";
    if (int64_t zero = getInteger(function, dist::kZeroAttr, 0))
      os << "zero: " << zero << "\n";
    if (auto bytes =
            function->getAttrOfType<IntegerAttr>(dist::kFusionBytesAttr))
      os << "fusion_bytes: " << bytes.getInt() << "\n";
    writeMesh(function, os);
  }

  static void writeMesh(func::FuncOp function, llvm::raw_ostream &os) {
    auto axes = function->getAttrOfType<ArrayAttr>(dist::kAxesAttr);
    if (!axes)
      return;
    os << "mesh: {";
    llvm::interleaveComma(
        axes.getAsRange<dist::AxisAttr>(), os, [&](dist::AxisAttr axis) {
          os << quote(axis.getName()) << ": "
             << (axis.getName() == dist::kStageAxis
                     ? getInteger(function, kDeviceCountAttr, 1)
                     : axis.getSize());
        });
    os << "}\n";
    const bool cutsTensors =
        llvm::any_of(axes.getAsRange<dist::AxisAttr>(), [](auto axis) {
          return axis.getName() != dist::kStageAxis &&
                 axis.getName() != dist::kDataAxis;
        });
    auto shards = function->getAttrOfType<DictionaryAttr>(kShardsAttr);
    if (!cutsTensors || !shards || shards.empty())
      return;
    os << "shard:\n";
    for (NamedAttribute shard : shards) {
      os << "  " << quote(escapeGlob(shard.getName())) << ": [";
      llvm::interleaveComma(
          cast<dist::ShardingAttr>(shard.getValue()).getDims(), os,
          [&](dist::DimAttr dim) { writeDim(dim, os); });
      os << "]\n";
    }
  }

  static void writeDim(dist::DimAttr dim, llvm::raw_ostream &os) {
    ArrayRef<StringAttr> axes = dim.getAxes();
    if (axes.empty())
      os << "null";
    else if (dim.getBlocks() > 1)
      os << "{" << quote(axes[0]) << ": " << dim.getBlocks() << "}";
    else if (axes.size() == 1)
      os << quote(axes[0]);
    else {
      os << "[";
      llvm::interleaveComma(axes, os,
                            [&](StringAttr axis) { os << quote(axis); });
      os << "]";
    }
  }
};

} // namespace
} // namespace partita::pipeline
