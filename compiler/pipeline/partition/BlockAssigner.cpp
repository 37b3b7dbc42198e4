//===- BlockAssigner.cpp - The blocks of a file, op by op -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/partition/BlockPatterns.h"

#include "compiler/model/ModelNodes.h"
#include "compiler/model/NodeNames.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "compiler/pipeline/phases/Followers.h"

#include "dialects/nn/NNDialect.h"
#include "dialects/nn/NodeScopes.h"
#include "dialects/support/Try.h"
#include "runtime/abi/Text.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"

#include <map>

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
        blockOf(active.size(), -1), nodes(function) {
    for (auto [index, op] : llvm::enumerate(active)) {
      indexOf[op] = index;
      SmallVector<StringRef, 2> own = getNodeNames(op->getLoc());
      for (StringRef name : own)
        opsOf[name].push_back(index);
      if (!own.empty())
        firstNamed[own[0]].push_back(index);
    }
  }

  FailureOr<std::vector<int>> assign() {
    for (auto [index, block] : llvm::enumerate(file.blocks))
      for (const FileText &pattern : block.nodes)
        PARTITA_TRY(addPattern(index, pattern));
    PARTITA_TRY(addBeginBlocks());
    joinNeighbours();
    return blockOf;
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
    // Nodes that have folded away, or depend on weights only, may be named
    // too, and say nothing.
    if (plain) {
      ArrayRef<int> called = nodes.find(*plain);
      if (called.empty())
        return error(pattern) << nodes.none() << " is called '" << *plain << "'"
                              << didYouMean(*plain, nodes.getKeys());
      return claimNodes(block, pattern, called);
    }
    llvm::Expected<llvm::GlobPattern> glob =
        llvm::GlobPattern::create(pattern.text, 64);
    if (!glob)
      return error(pattern)
             << "'" << pattern.text
             << "' is not a pattern: " << llvm::toString(glob.takeError());
    const std::vector<int> matched = nodes.match(*glob);
    if (matched.empty())
      return error(pattern) << nodes.none() << " matches '" << pattern.text
                            << "'" << didYouMeanBegin(pattern.text);
    return claimNodes(block, pattern, matched);
  }

  /// The node or module whose name begins most like the pattern.
  std::string didYouMeanBegin(StringRef pattern) {
    StringRef stem = pattern.take_until([](char c) { return c == '*'; });
    StringRef nearest;
    unsigned distance = stem.size() / 2 + 1;
    for (StringRef name : nodes.getKeys())
      if (unsigned d =
              stem.edit_distance(name.take_front(stem.size()), true, distance);
          d < distance) {
        distance = d;
        nearest = name;
      }
    return nearest.empty() ? "" : ("; did you mean '" + nearest + "'?").str();
  }

  LogicalResult claimNodes(int block, const FileText &pattern,
                           ArrayRef<int> claimed) {
    for (int node : claimed) {
      StringRef name = nodes.getNames()[node];
      for (int index : opsOf.lookup(name)) {
        SmallVector<StringRef, 2> own = getNodeNames(active[index]->getLoc());
        int nameIndex = llvm::find(own, name) - own.begin();
        PARTITA_TRY(claim(block, pattern, index, ranks, nameIndex));
      }
    }
    return success();
  }

  /// A begin block takes every op that no glob names, from its node, or the
  /// first node of its module, to the next begin block.
  LogicalResult addBeginBlocks() {
    std::map<int, int> begins; // op -> block
    for (auto [index, block] : llvm::enumerate(file.blocks)) {
      if (!block.begin)
        continue;
      ArrayRef<int> called = nodes.find(block.begin->text);
      if (called.empty())
        return error(*block.begin)
               << nodes.none() << " is called '" << block.begin->text << "'"
               << didYouMean(block.begin->text, nodes.getKeys());
      // After a node that has folded away, the block begins with the next one.
      ArrayRef<StringRef> rest = nodes.getNames().drop_front(called.front());
      auto it = llvm::find_if(
          rest, [&](StringRef name) { return opsOf.count(name); });
      if (it == rest.end())
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
    const Phases phases(function);
    const llvm::DenseSet<Operation *> named = findNamed(function);
    for (size_t i = 0; i < active.size(); ++i)
      if (blockOf[i] < 0 && named.contains(active[i]) &&
          phases.get(active[i]) == dist::Phase::forward)
        joined.push_back("'" + nn::getNodeName(active[i]) + "'" +
                         nn::inScope(active[i]->getLoc()));
    auto join = [&](int &own, Operation *neighbour, auto isBetter) {
      auto it = indexOf.find(neighbour);
      const int block = it == indexOf.end() ? -1 : blockOf[it->second];
      if (block >= 0 && (own < 0 || isBetter(position(block), position(own))))
        own = block;
    };
    for (size_t i = 0; i < active.size(); ++i)
      if (blockOf[i] < 0)
        for (Value operand : active[i]->getOperands())
          join(blockOf[i], operand.getDefiningOp(), std::greater<int>());
    for (size_t i = active.size(); i-- > 0;)
      if (blockOf[i] < 0)
        for (Operation *user : active[i]->getUsers())
          join(blockOf[i], user, std::less<int>());
    for (int &block : blockOf)
      block = std::max(block, 0);
    if (joined.empty())
      return;
    InFlightDiagnostic remark = mlir::emitRemark(
        FileLineColLoc::get(function.getContext(), path, 1, 1));
    remark << abi::countOf(joined.size(), "operation")
           << (joined.size() == 1 ? " is" : " are")
           << " in no block; each joins the block of what it reads, or else of "
              "what reads it: ";
    for (auto [index, name] : llvm::enumerate(joined)) {
      if (index == 4) {
        remark << ", ...";
        break;
      }
      remark << (index ? ", " : "") << name;
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
  const ModelNodes nodes;
};

} // namespace

FailureOr<std::vector<int>>
assignBlocks(func::FuncOp function, const PartitionFile &file, StringRef path) {
  return BlockAssigner(function, file, path).assign();
}

} // namespace partita::pipeline
