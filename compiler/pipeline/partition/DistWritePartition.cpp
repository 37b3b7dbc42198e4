//===- DistWritePartition.cpp - The decision as a partition file ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/Decision.h"
#include "compiler/pipeline/Names.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/partition/PartitionGraph.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/ToolOutputFile.h"

#include <map>

namespace partita::pipeline {
#define GEN_PASS_DEF_DISTWRITEPARTITIONPASS
#include "compiler/pipeline/Passes.h.inc"
} // namespace partita::pipeline

using namespace mlir;

namespace partita::pipeline {
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

/// Names of a block's nodes; `name#k` where another block has ops of the node.
std::map<std::string, std::vector<std::string>>
getBlocks(func::FuncOp function, LogicalResult &result) {
  struct Node {
    std::vector<std::string> blockOfPart;
  };
  llvm::MapVector<StringRef, Node> nodes;
  for (Operation *op : getActiveOps(function.getBody().front())) {
    SmallVector<StringRef, 2> names = getNodeNames(op->getLoc());
    if (names.empty()) {
      result =
          op->emitError("has no node name, by which a partition file could "
                        "name it");
      return {};
    }
    nodes[names[0]].blockOfPart.push_back(getBlockName(op).str());
  }
  std::vector<std::string> order;
  std::vector<std::vector<std::string>> whole;
  std::map<std::string, std::vector<std::string>> parts;
  std::map<std::string, size_t> indexOf;
  for (auto &[name, node] : nodes) {
    bool isOne = llvm::all_equal(node.blockOfPart);
    for (auto [index, block] : llvm::enumerate(node.blockOfPart)) {
      auto [it, isNew] = indexOf.emplace(block, order.size());
      if (isNew) {
        order.push_back(block);
        whole.emplace_back();
      }
      if (!isOne)
        parts[block].push_back(escapeGlob(name) + "#" + std::to_string(index));
      else if (index == 0)
        whole[it->second].push_back(name.str());
    }
  }
  // A glob must not take a node of several blocks whole.
  std::vector<std::vector<std::string>> lists = whole;
  lists.emplace_back();
  for (auto &[name, node] : nodes)
    if (!llvm::all_equal(node.blockOfPart))
      lists.back().push_back(name.str());
  // Nor may it take an op by one of its further names.
  for (Operation *op : getActiveOps(function.getBody().front()))
    for (StringRef name : ArrayRef(getNodeNames(op->getLoc())).drop_front())
      if (!nodes.count(name))
        lists.back().push_back(name.str());
  std::vector<std::vector<std::string>> compact = compactNames(lists);
  std::map<std::string, std::vector<std::string>> blocks;
  for (auto [index, name] : llvm::enumerate(order)) {
    blocks[name] = compact[index];
    for (std::string &part : parts[name])
      blocks[name].push_back(part);
  }
  return blocks;
}

struct DistWritePartitionPass
    : impl::DistWritePartitionPassBase<DistWritePartitionPass> {
  using DistWritePartitionPassBase::DistWritePartitionPassBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> function = getModelFunction(getOperation());
    LogicalResult result = success();
    if (failed(function))
      return signalPassFailure();
    auto blocks = getBlocks(*function, result);
    if (failed(result))
      return signalPassFailure();
    std::string text;
    llvm::raw_string_ostream os(text);
    write(*function, blocks, os);
    std::error_code error;
    llvm::ToolOutputFile output(file, error, llvm::sys::fs::OF_Text);
    if (!error) {
      output.os() << text;
      output.os().flush();
      error = output.os().error();
      output.os().clear_error();
    }
    if (error) {
      emitError(getOperation().getLoc()) << "cannot write the partition file '"
                                         << file << "': " << error.message();
      return signalPassFailure();
    }
    output.keep();
    markAllAnalysesPreserved();
  }

private:
  void write(func::FuncOp function,
             const std::map<std::string, std::vector<std::string>> &blocks,
             llvm::raw_ostream &os) {
    auto stages = function->getAttrOfType<ArrayAttr>(kStageBlocksAttr);
    SmallVector<std::string> lists;
    if (!blocks.empty())
      os << "blocks:\n";
    for (auto stage : stages.getAsRange<ArrayAttr>()) {
      std::string list;
      for (auto block : stage.getAsRange<StringAttr>()) {
        auto it = blocks.find(block.str());
        if (it == blocks.end()) // nothing is left of it
          continue;
        os << "  " << quote(block.getValue()) << ":\n";
        for (const std::string &pattern : it->second)
          os << "    - " << quote(pattern) << "\n";
        list += (list.empty() ? "" : ", ") + quote(block.getValue());
      }
      lists.push_back("[" + list + "]");
    }
    if (!blocks.empty())
      os << "stages: [" << llvm::join(lists, ", ") << "]\n";
    os << "devices: [";
    llvm::interleaveComma(getDevices(function), os);
    os << "]\nschedule: " << getString(function, dist::kScheduleAttr, "")
       << "\nmicro_batches: "
       << getInteger(function, dist::kMicroBatchesAttr, 1) << "\n";
    if (int64_t bytes = getInteger(function, kMemoryAttr, 0))
      os << "memory: " << bytes << "B\n";
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
    auto shards = function->getAttrOfType<DictionaryAttr>(kShardsAttr);
    if (!shards || shards.empty())
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
