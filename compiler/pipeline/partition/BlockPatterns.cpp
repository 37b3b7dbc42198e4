//===- BlockPatterns.cpp - Blocks in a person's words ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/partition/BlockPatterns.h"

#include "compiler/model/Decision.h"
#include "compiler/model/ModelNodes.h"
#include "compiler/model/NodeNames.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "compiler/pipeline/phases/Followers.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <limits>
#include <map>

using namespace mlir;

namespace partita::pipeline {

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// "[0-3]", "{9,10}" or the number itself; of ascending numbers.
static std::string writeNumbers(ArrayRef<int64_t> numbers) {
  if (numbers.size() == 1)
    return std::to_string(numbers[0]);
  const bool isRange =
      numbers.back() <= 9 && numbers.back() - numbers.front() + 1 ==
                                 static_cast<int64_t>(numbers.size());
  if (isRange)
    return "[" + std::to_string(numbers.front()) + "-" +
           std::to_string(numbers.back()) + "]";
  std::string text = "{";
  for (int64_t number : numbers)
    text += (text.size() > 1 ? "," : "") + std::to_string(number);
  return text + "}";
}

std::vector<std::string> joinNumbered(ArrayRef<std::string> names) {
  // By what is before and after the last number that is a part by itself.
  using Around = std::pair<std::string, std::string>;
  llvm::MapVector<Around, std::vector<int64_t>, std::map<Around, unsigned>>
      groups;
  for (const std::string &name : names) {
    SmallVector<StringRef> parts;
    StringRef(name).split(parts, '.');
    size_t at = parts.size();
    int64_t number = -1;
    while (at-- > 0)
      if (llvm::all_of(parts[at], llvm::isDigit) && parts[at].size() < 10 &&
          !parts[at].getAsInteger(10, number) &&
          std::to_string(number) == parts[at])
        break;
    if (at >= parts.size()) {
      groups.try_emplace({name, ""}); // it stays alone
      continue;
    }
    std::string before = llvm::join(ArrayRef(parts).take_front(at), "."),
                after = llvm::join(ArrayRef(parts).drop_front(at + 1), ".");
    groups[{before.empty() ? "" : before + ".",
            after.empty() ? "" : "." + after}]
        .push_back(number);
  }
  std::vector<std::string> joined;
  for (auto &[around, numbers] : groups) {
    llvm::sort(numbers);
    joined.push_back(around.first +
                     (numbers.empty() ? std::string() : writeNumbers(numbers)) +
                     around.second);
  }
  return joined;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

namespace {

constexpr int kNone = -1, kSeveral = -2;

class BlockDescriber {
public:
  explicit BlockDescriber(func::FuncOp function)
      : function(function), nodes(function),
        active(getActiveOps(function.getBody().front())),
        named(findNamed(function)) {}

  FailureOr<std::vector<BlockPatterns>> describe() {
    for (Operation *op : active)
      if (named.contains(op) && getNodeNames(op->getLoc()).empty())
        return op->emitError("has no node name, by which a partition file "
                             "could name it");
    if (active.empty())
      return std::vector<BlockPatterns>();
    collect();
    using Description = std::optional<std::vector<BlockPatterns>>;
    Description best;
    for (Description made : {byBegins(), byGlobs(/*useModules=*/true),
                             byGlobs(/*useModules=*/false)})
      if (made && (!best || countWords(*made) < countWords(*best)) &&
          saysTheSame(*made))
        best = std::move(made);
    return best ? *best : byOps();
  }

private:
  void collect() {
    llvm::StringMap<int> known;
    for (auto [index, op] : llvm::enumerate(active)) {
      SmallVector<StringRef, 2> names = getNodeNames(op->getLoc());
      for (StringRef name : names)
        opsOf[name].push_back(static_cast<int>(index));
      if (!names.empty())
        firstNamed[names[0]].push_back(static_cast<int>(index));
      blockOf.push_back(kNone);
      if (!named.contains(op))
        continue;
      StringRef block = getBlockName(op);
      auto [it, isNew] =
          known.try_emplace(block, static_cast<int>(blocks.size()));
      if (isNew)
        blocks.push_back(block.str());
      blockOf.back() = it->second;
      auto [owner, isFirst] = owners.try_emplace(names[0], it->second);
      if (owner->second != it->second)
        owner->second = kSeveral;
    }
    // Where a block begins that begins with a node.
    beginOf.resize(nodes.getNames().size());
    int next = kNone;
    for (size_t node = beginOf.size(); node-- > 0;) {
      auto it = opsOf.find(nodes.getNames()[node]);
      if (it != opsOf.end())
        next = it->second.front();
      beginOf[node] = next;
    }
  }

  std::vector<BlockPatterns> makeBlocks() const {
    std::vector<BlockPatterns> made;
    for (const std::string &name : blocks)
      made.push_back({name, {}, std::nullopt});
    return made;
  }

  StringRef getFirstName(int op) const {
    return getNodeNames(active[op]->getLoc())[0];
  }

  /// A glob for one op alone, whatever else has its name.
  std::string namePart(int op) {
    StringRef name = getFirstName(op);
    ArrayRef<int> own = firstNamed[name];
    return escapeGlob(name) + "#" +
           std::to_string(llvm::find(own, op) - own.begin());
  }

  /// The same, shorter where it can be.
  std::string nameOp(int op) {
    StringRef name = getFirstName(op);
    return opsOf[name].size() == 1 && nodes.find(name).size() == 1
               ? escapeGlob(name)
               : namePart(op);
  }

  /// Every op by itself: that can always be said.
  std::vector<BlockPatterns> byOps() {
    std::vector<BlockPatterns> made = makeBlocks();
    for (size_t op = 0; op < active.size(); ++op)
      if (blockOf[op] != kNone)
        made[blockOf[op]].globs.push_back(namePart(static_cast<int>(op)));
    return made;
  }

  /// A glob besides begins is an exception that a reader has to keep in mind.
  static size_t countWords(const std::vector<BlockPatterns> &made) {
    size_t words = 0;
    for (const BlockPatterns &block : made)
      words += block.begin ? 1 + 2 * block.globs.size() : block.globs.size();
    return words;
  }

  /// Whether reading it gives each op its block, without a remark.
  bool saysTheSame(const std::vector<BlockPatterns> &made) {
    PartitionFile file;
    for (const BlockPatterns &block : made) {
      FileBlock &written = file.blocks.emplace_back();
      written.name.text = block.name;
      for (const std::string &glob : block.globs)
        written.nodes.push_back({glob, 1, 1});
      if (block.begin)
        written.begin = {*block.begin, 1, 1};
    }
    bool isSilent = true;
    ScopedDiagnosticHandler quiet(function.getContext(), [&](Diagnostic &) {
      isSilent = false;
      return success();
    });
    FailureOr<std::vector<int>> read = assignBlocks(function, file, "");
    if (failed(read) || !isSilent)
      return false;
    for (auto [block, op] : llvm::zip_equal(*read, active))
      if (named.contains(op) && made[block].name != getBlockName(op))
        return false;
    return true;
  }

  //===--------------------------------------------------------------------===//
  // begin_blocks
  //===--------------------------------------------------------------------===//

  /// What a block that begins with an op begins with: the outermost module that
  /// does, or the op's node. Nothing if that names another op.
  std::optional<std::string> getBegin(int op) {
    StringRef name = getFirstName(op), scope = nodes.getScope(name);
    auto begins = [&](StringRef key) {
      ArrayRef<int> called = nodes.find(key);
      return !called.empty() && beginOf[called.front()] == op;
    };
    for (size_t end = scope.find('.'); end != StringRef::npos;
         end = scope.find('.', end + 1))
      if (begins(scope.take_front(end)))
        return scope.take_front(end).str();
    if (!scope.empty() && begins(scope))
      return scope.str();
    return begins(name) ? std::optional(name.str()) : std::nullopt;
  }

  bool isElsewhere(int op, int block) const {
    return blockOf[op] != kNone && blockOf[op] != block;
  }

  /// A begin for each block, such that as few ops as possible are elsewhere
  /// than in the block that has begun before them; globs for those.
  std::optional<std::vector<BlockPatterns>> byBegins() {
    const int count = static_cast<int>(active.size()),
              blockCount = static_cast<int>(blocks.size());
    std::vector<int> order = sortByMiddle();
    constexpr int kNever = std::numeric_limits<int>::max() / 2;
    // After block k of the order, with op i the next: how many are elsewhere.
    std::vector<std::vector<int>> least(blockCount + 1,
                                        std::vector<int>(count + 1, kNever)),
        begunAt(least);
    std::vector<bool> canBegin;
    for (int op = 0; op < count; ++op)
      canBegin.push_back(blockOf[op] != kNone && getBegin(op).has_value());
    least[0][0] = 0;
    for (int k = 0; k < blockCount; ++k) {
      // The best op for the block to begin at, of those before op i.
      int best = kNever, at = kNone;
      for (int i = 0; i < count; ++i) {
        if (canBegin[i] && least[k][i] < best) {
          best = least[k][i];
          at = i;
        }
        best += best < kNever && isElsewhere(i, order[k]);
        least[k + 1][i + 1] = best;
        begunAt[k + 1][i + 1] = at;
      }
    }
    if (least[blockCount][count] >= kNever)
      return std::nullopt;
    std::vector<BlockPatterns> made = makeBlocks();
    for (int k = blockCount, end = count; k > 0; --k) {
      const int begin = begunAt[k][end];
      made[order[k - 1]].begin = getBegin(begin);
      for (int op = end; op-- > begin;)
        if (isElsewhere(op, order[k - 1]))
          made[blockOf[op]].globs.push_back(nameOp(op));
      end = begin;
    }
    for (BlockPatterns &block : made) // they were found from the end on
      std::reverse(block.globs.begin(), block.globs.end());
    return made;
  }

  /// Blocks by the op in the middle of theirs.
  std::vector<int> sortByMiddle() const {
    std::vector<std::vector<int>> opsOfBlock(blocks.size());
    for (auto [op, block] : llvm::enumerate(blockOf))
      if (block != kNone)
        opsOfBlock[block].push_back(static_cast<int>(op));
    std::vector<int> order;
    for (size_t block = 0; block < blocks.size(); ++block)
      order.push_back(static_cast<int>(block));
    llvm::stable_sort(order, [&](int a, int b) {
      return opsOfBlock[a][opsOfBlock[a].size() / 2] <
             opsOfBlock[b][opsOfBlock[b].size() / 2];
    });
    return order;
  }

  //===--------------------------------------------------------------------===//
  // blocks
  //===--------------------------------------------------------------------===//

  int getOwner(StringRef node) const {
    auto it = owners.find(node);
    return it == owners.end() ? kNone : it->second;
  }

  /// The block that has all nodes of a module, and no part of one; kNone if
  /// none is computed, kSeveral if no block does.
  int getModuleOwner(StringRef module) {
    auto [it, isNew] = moduleOwners.try_emplace(module, kNone);
    if (!isNew)
      return it->second;
    for (int node : nodes.find(module)) {
      const int owner = getOwner(nodes.getNames()[node]);
      if (owner == kNone)
        continue;
      it->second =
          it->second == kNone || it->second == owner ? owner : kSeveral;
      if (it->second == kSeveral)
        break;
    }
    return it->second;
  }

  /// The outermost module of a node that its block has for itself.
  std::optional<std::string> getModule(int block, StringRef node) {
    StringRef scope = nodes.getScope(node);
    for (size_t end = scope.find('.'); !scope.empty();
         end = scope.find('.', end + 1)) {
      StringRef module = scope.take_front(end);
      if (getModuleOwner(module) == block && escapeGlob(module) == module)
        return module.str();
      if (end == StringRef::npos)
        break;
    }
    return std::nullopt;
  }

  /// Globs for each block: modules, prefixes of names, names, parts of nodes.
  std::optional<std::vector<BlockPatterns>> byGlobs(bool useModules) {
    // A glob must take neither a node of several blocks whole, nor an op by one
    // of its further names: the last list is nobody's.
    std::vector<std::vector<std::string>> whole(blocks.size() + 1);
    std::vector<std::vector<std::string>> modules(blocks.size());
    std::vector<std::vector<bool>> isCovered(blocks.size());
    std::vector<std::vector<std::string>> parts(blocks.size());
    llvm::StringMap<bool> seen;
    for (size_t op = 0; op < active.size(); ++op) {
      if (blockOf[op] == kNone)
        continue;
      SmallVector<StringRef, 2> names = getNodeNames(active[op]->getLoc());
      const int owner = getOwner(names[0]), block = blockOf[op];
      if (owner == kSeveral)
        parts[block].push_back(namePart(static_cast<int>(op)));
      for (StringRef further : ArrayRef(names).drop_front())
        if (getOwner(further) == kNone &&
            seen.try_emplace(further, true).second)
          whole.back().push_back(further.str());
      if (!seen.try_emplace(names[0], true).second)
        continue;
      if (owner == kSeveral) {
        whole.back().push_back(names[0].str());
        continue;
      }
      whole[block].push_back(names[0].str());
      std::optional<std::string> module =
          useModules ? getModule(block, names[0]) : std::nullopt;
      isCovered[block].push_back(module.has_value());
      if (module && !llvm::is_contained(modules[block], *module))
        modules[block].push_back(*module);
    }
    std::vector<std::vector<std::string>> compact = compactNames(whole);
    std::vector<BlockPatterns> made = makeBlocks();
    for (size_t block = 0; block < blocks.size(); ++block) {
      std::vector<std::string> &globs = made[block].globs;
      globs = joinNumbered(modules[block]);
      for (auto [glob, covered] :
           llvm::zip_equal(compact[block], isCovered[block]))
        if (!covered && !llvm::is_contained(globs, glob))
          globs.push_back(glob);
      globs.insert(globs.end(), parts[block].begin(), parts[block].end());
    }
    return made;
  }

  func::FuncOp function;
  const ModelNodes nodes;
  const SmallVector<Operation *> active;
  const llvm::DenseSet<Operation *> named; ///< see findNamed
  std::vector<std::string> blocks;         ///< in the order of their first ops
  std::vector<int> blockOf; ///< by op; kNone: of those that follow
  /// By name: ops that have it, ops whose first name it is.
  llvm::StringMap<std::vector<int>> opsOf, firstNamed;
  /// By first name: the block of all its ops that are named, or kSeveral.
  llvm::StringMap<int> owners;
  llvm::StringMap<int> moduleOwners; ///< the same by module
  std::vector<int> beginOf; ///< by node: the op that it, or the next, begins at
};

} // namespace

FailureOr<std::vector<BlockPatterns>> describeBlocks(func::FuncOp function) {
  return BlockDescriber(function).describe();
}

} // namespace partita::pipeline
