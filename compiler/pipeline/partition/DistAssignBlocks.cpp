//===- DistAssignBlocks.cpp - Blocks of a partition file ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/Decision.h"
#include "compiler/pipeline/Names.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/partition/PartitionFile.h"
#include "compiler/pipeline/partition/PartitionGraph.h"

#include "dialects/nn/NNDialect.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/GlobPattern.h"

namespace partita::pipeline {
#define GEN_PASS_DEF_DISTASSIGNBLOCKSPASS
#include "compiler/pipeline/Passes.h.inc"
} // namespace partita::pipeline

using namespace mlir;

namespace partita::pipeline {
namespace {

/// Puts the ops of a model into the blocks of a file.
class BlockAssigner {
public:
  BlockAssigner(func::FuncOp function, const PartitionFile &file,
                StringRef path)
      : function(function), file(file), path(path),
        active(getActiveOps(function.getBody().front())),
        blockOf(active.size(), -1) {
    for (auto [index, op] : llvm::enumerate(active)) {
      indexOf[op] = index;
      SmallVector<StringRef, 2> own = getNodeNames(op->getLoc());
      for (StringRef name : own)
        opsOf[name].push_back(index);
      if (!own.empty())
        firstNamed[own[0]].push_back(index);
    }
    // Nodes of the model that have folded away, or depend on weights only, may
    // be named too, and say nothing.
    if (auto all =
            function->getParentOfType<ModuleOp>()->getAttrOfType<ArrayAttr>(
                kNodesAttr))
      for (auto node : all.getAsRange<StringAttr>())
        nodes.insert(node.getValue());
    function.getBody().front().walk([&](Operation *op) {
      for (StringRef name : getNodeNames(op->getLoc()))
        nodes.insert(name);
    });
    names.assign(nodes.begin(), nodes.end());
  }

  LogicalResult assign() {
    if (file.blocks.empty())
      return success();
    for (auto [index, block] : llvm::enumerate(file.blocks))
      for (const FileText &pattern : block.nodes)
        if (failed(addPattern(index, pattern)))
          return failure();
    if (failed(addBeginBlocks()))
      return failure();
    joinNeighbours();
    Builder builder(function.getContext());
    for (auto [op, block] : llvm::zip(active, blockOf))
      op->setAttr(dist::kBlockAttr,
                  builder.getStringAttr(file.blocks[block].name.text));
    return success();
  }

private:
  InFlightDiagnostic error(const FileText &at) {
    return emitError(
        FileLineColLoc::get(function.getContext(), path, at.line, at.column));
  }

  LogicalResult claim(int block, const FileText &pattern, int index,
                      std::vector<int> &rank, int nameIndex) {
    // An op of several nodes belongs to the block of the first that is named.
    if (blockOf[index] >= 0 && rank[index] < nameIndex)
      return success();
    if (blockOf[index] >= 0 && rank[index] == nameIndex &&
        blockOf[index] != block)
      return error(pattern)
             << "node '" << nn::getNodeName(active[index]) << "' is in block '"
             << file.blocks[blockOf[index]].name.text << "' already; '"
             << pattern.text << "' would put it into block '"
             << file.blocks[block].name.text << "' too";
    blockOf[index] = block;
    rank[index] = nameIndex;
    return success();
  }

  LogicalResult addPattern(int block, const FileText &pattern) {
    ranks.resize(active.size(), 0);
    std::optional<std::string> plain = getPlainName(pattern.text);
    // name#2
    StringRef text = pattern.text;
    size_t hash = text.rfind('#');
    unsigned part;
    if (hash != StringRef::npos && !(plain && opsOf.count(*plain)) &&
        !text.drop_front(hash + 1).getAsInteger(10, part)) {
      std::optional<std::string> name = getPlainName(text.take_front(hash));
      if (name && firstNamed.count(*name) && part < firstNamed[*name].size())
        return claim(block, pattern, firstNamed[*name][part], ranks, 0);
    }
    bool matched = false;
    if (plain) {
      auto it = opsOf.find(*plain);
      if (it == opsOf.end()) {
        if (nodes.contains(*plain))
          return success();
        return error(pattern) << "no node is called '" << *plain << "'"
                              << didYouMean(*plain, names);
      }
      return claimName(block, pattern, it->first);
    }
    llvm::Expected<llvm::GlobPattern> glob =
        llvm::GlobPattern::create(pattern.text, 64);
    if (!glob)
      return error(pattern)
             << "'" << pattern.text
             << "' is not a pattern: " << llvm::toString(glob.takeError());
    for (StringRef name : names)
      if (glob->match(name)) {
        matched = true;
        if (failed(claimName(block, pattern, name)))
          return failure();
      }
    if (!matched)
      return error(pattern) << "no node matches '" << pattern.text << "'"
                            << didYouMeanBegin(pattern.text);
    return success();
  }

  /// The node whose name begins most like the pattern.
  std::string didYouMeanBegin(StringRef pattern) {
    StringRef stem = pattern.take_until([](char c) { return c == '*'; });
    StringRef nearest;
    unsigned distance = stem.size() / 2 + 1;
    for (StringRef name : names)
      if (unsigned d =
              stem.edit_distance(name.take_front(stem.size()), true, distance);
          d < distance) {
        distance = d;
        nearest = name;
      }
    return nearest.empty() ? "" : ("; did you mean '" + nearest + "'?").str();
  }

  LogicalResult claimName(int block, const FileText &pattern, StringRef name) {
    for (int index : opsOf.lookup(name)) {
      SmallVector<StringRef, 2> own = getNodeNames(active[index]->getLoc());
      int nameIndex = llvm::find(own, name) - own.begin();
      if (failed(claim(block, pattern, index, ranks, nameIndex)))
        return failure();
    }
    return success();
  }

  /// A begin block takes every op that no glob names, from its node to the next
  /// begin block.
  LogicalResult addBeginBlocks() {
    std::map<int, int> begins; // op -> block
    for (auto [index, block] : llvm::enumerate(file.blocks)) {
      if (!block.begin)
        continue;
      // After a node that has folded away, the block begins with the next one.
      auto it = llvm::find(names, block.begin->text);
      if (it == names.end())
        return error(*block.begin)
               << "no node is called '" << block.begin->text << "'"
               << didYouMean(block.begin->text, names);
      it = std::find_if(it, names.end(),
                        [&](StringRef name) { return opsOf.count(name); });
      if (it == names.end())
        return error(*block.begin)
               << "block '" << block.name.text << "' is empty: nothing at or "
               << "after node '" << block.begin->text << "' is left to compute";
      auto [at, isNew] = begins.emplace(opsOf[*it].front(), index);
      if (!isNew)
        return error(*block.begin)
               << "block '" << file.blocks[at->second].name.text
               << "' begins with '" << block.begin->text << "' too";
    }
    int current = -1;
    for (size_t i = 0; i < active.size(); ++i) {
      if (auto it = begins.find(i); it != begins.end())
        current = it->second;
      if (blockOf[i] < 0)
        blockOf[i] = current;
    }
    return success();
  }

  /// Position of a block in the order of stages: joining the last of several
  /// producers keeps that order.
  int position(int block) const {
    if (file.stages)
      for (auto [index, stage] : llvm::enumerate(*file.stages))
        for (const FileText &name : stage)
          if (name.text == file.blocks[block].name.text)
            return index;
    return block;
  }

  void joinNeighbours() {
    SmallVector<std::string> joined;
    for (size_t i = 0; i < active.size(); ++i)
      if (blockOf[i] < 0)
        joined.push_back(nn::getNodeName(active[i]));
    if (joined.empty())
      return;
    for (size_t i = 0; i < active.size(); ++i)
      if (blockOf[i] < 0)
        for (Value operand : active[i]->getOperands())
          if (auto it = indexOf.find(operand.getDefiningOp());
              it != indexOf.end())
            if (int block = blockOf[it->second];
                block >= 0 &&
                (blockOf[i] < 0 || position(block) > position(blockOf[i])))
              blockOf[i] = block;
    for (size_t i = active.size(); i-- > 0;)
      if (blockOf[i] < 0)
        for (Operation *user : active[i]->getUsers())
          if (auto it = indexOf.find(user); it != indexOf.end())
            if (int block = blockOf[it->second];
                block >= 0 &&
                (blockOf[i] < 0 || position(block) < position(blockOf[i])))
              blockOf[i] = block;
    for (int &block : blockOf)
      block = std::max(block, 0);
    InFlightDiagnostic remark = mlir::emitRemark(
        FileLineColLoc::get(function.getContext(), path, 1, 1));
    remark << joined.size()
           << " operations are in no block; each joins the block of what it "
              "reads, or else of what reads it: ";
    for (auto [index, name] : llvm::enumerate(joined)) {
      if (index == 4) {
        remark << ", ...";
        break;
      }
      remark << (index ? ", '" : "'") << name << "'";
    }
  }

  func::FuncOp function;
  const PartitionFile &file;
  StringRef path;
  SmallVector<Operation *> active;
  std::vector<int> blockOf, ranks;
  llvm::DenseMap<Operation *, int> indexOf;
  llvm::DenseMap<StringRef, std::vector<int>> opsOf; // any of an op's names
  llvm::DenseMap<StringRef, std::vector<int>> firstNamed;
  llvm::SetVector<StringRef> nodes; // of the model, in their order
  std::vector<StringRef> names;     // the same, for messages
};

struct DistAssignBlocksPass
    : impl::DistAssignBlocksPassBase<DistAssignBlocksPass> {
  using DistAssignBlocksPassBase::DistAssignBlocksPassBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> function = getModelFunction(getOperation());
    if (failed(function) || failed(checkOptions()))
      return signalPassFailure();
    FailureOr<PartitionFile> read =
        readPartitionFile(getOperation().getLoc(), file);
    if (failed(read) ||
        failed(BlockAssigner(*function, *read, file).assign()) ||
        failed(writeDecision(*function, *read)))
      signalPassFailure();
  }

private:
  LogicalResult checkOptions() {
    Location loc = getOperation().getLoc();
    if (devices < 0 || devices > dist::kMostDevices)
      return emitError(loc)
             << "the number of devices must be 1 to " << dist::kMostDevices
             << ", not " << int64_t(devices);
    if (microBatches < 0)
      return emitError(loc) << "the number of micro-batches must be at least "
                               "1, not "
                            << int64_t(microBatches);
    if (stages < 0 || stages > kMostStages)
      return emitError(loc) << "the number of stages must be 1 to "
                            << kMostStages << ", not " << int64_t(stages);
    if (memory < 0)
      return emitError(loc) << "a device's memory must be at least 1 byte, not "
                            << int64_t(memory);
    if (schedule != kFormerSequential && !schedule::findSchedule(schedule))
      return emitError(loc) << describeUnknownSchedule(schedule);
    return success();
  }

  /// The schedule that the options or else the file name, by its name of today;
  /// empty if neither does.
  std::string getScheduleName(const PartitionFile &read) {
    auto rename = [](Location loc) {
      emitRemark(loc) << "'" << kFormerSequential
                      << "' is called sequential now: say `schedule: "
                         "sequential`";
      return "sequential";
    };
    if (!schedule.empty())
      return schedule == kFormerSequential ? rename(getOperation().getLoc())
                                           : std::string(schedule);
    for (const std::optional<FileText> &said : {read.strategy, read.schedule})
      if (said && said->text == kFormerSequential)
        return rename(
            FileLineColLoc::get(&getContext(), file, said->line, said->column));
    return read.schedule ? read.schedule->text : "";
  }

  LogicalResult writeDecision(func::FuncOp function,
                              const PartitionFile &read) {
    Builder builder(&getContext());
    // A mesh may say how many there are along its axis "stage".
    const int64_t said = devices > 0
                             ? int64_t(devices)
                             : getInteger(function, kDeviceCountAttr, 0);
    int64_t count = said;
    for (int64_t device : read.devices) {
      if (said > 0 && device >= said)
        return emitError(FileLineColLoc::get(&getContext(), file,
                                             read.devicesAt.line,
                                             read.devicesAt.column))
               << "unknown device " << device << ": there are " << said
               << " devices; the nearest is " << said - 1;
      count = std::max(count, device + 1);
    }
    function->setAttr(kDeviceCountAttr, builder.getI64IntegerAttr(count));
    if (!read.devices.empty())
      function->setAttr(dist::kDevicesAttr,
                        builder.getDenseI64ArrayAttr(read.devices));
    if (std::string name = getScheduleName(read); !name.empty())
      function->setAttr(dist::kScheduleAttr, builder.getStringAttr(name));
    if (stages > 0)
      function->setAttr(kStageCountAttr, builder.getI64IntegerAttr(stages));
    if (int64_t bytes = memory > 0 ? int64_t(memory) : read.memory.value_or(0))
      function->setAttr(kMemoryAttr, builder.getI64IntegerAttr(bytes));
    int64_t batches = microBatches > 0 ? int64_t(microBatches)
                                       : read.microBatches.value_or(0);
    if (batches > 0)
      function->setAttr(dist::kMicroBatchesAttr,
                        builder.getI64IntegerAttr(batches));
    if (read.blocks.empty() && !read.stages)
      return success();
    SmallVector<Attribute> order, stages;
    for (const FileBlock &block : read.blocks)
      order.push_back(builder.getStringAttr(block.name.text));
    function->setAttr(kBlockOrderAttr, builder.getArrayAttr(order));
    function->setAttr(
        kAutoStageAttr,
        builder.getStringAttr(read.autoStage ? StringRef(read.autoStage->text)
                                             : "same_as_device"));
    if (!read.stages)
      return success();
    for (const std::vector<FileText> &stage : *read.stages) {
      SmallVector<Attribute> blocks;
      for (const FileText &block : stage)
        blocks.push_back(builder.getStringAttr(block.text));
      stages.push_back(builder.getArrayAttr(blocks));
    }
    function->setAttr(kStageBlocksAttr, builder.getArrayAttr(stages));
    return success();
  }
};

} // namespace
} // namespace partita::pipeline
