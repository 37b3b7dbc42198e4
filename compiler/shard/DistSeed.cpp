//===- DistSeed.cpp - Shardings that a partition file says ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Rates.h"
#include "compiler/model/ModelFunction.h"
#include "compiler/model/NodeNames.h"
#include "compiler/model/PartitionFile.h"
#include "compiler/shard/Passes.h"
#include "compiler/shard/Propagation.h"
#include "dialects/support/Try.h"
#include "runtime/abi/Text.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;

namespace partita::shard {

#define GEN_PASS_DEF_DISTSEEDPASS
#include "compiler/shard/Passes.h.inc"

namespace {

class Seeder {
public:
  Seeder(func::FuncOp function, StringRef path)
      : function(function), path(path), axes(function) {
    SymbolTable symbols(function->getParentOfType<ModuleOp>());
    for (BlockArgument argument : function.getArguments())
      if (auto name = function.getArgAttrOfType<StringAttr>(
              argument.getArgNumber(), nn::kNameAttr))
        add(name.getValue(), argument);
    for (auto parameter : function.getOps<nn::ParameterOp>())
      if (auto weight = symbols.lookup<nn::WeightOp>(parameter.getWeight()))
        add(weight.getOrigin(), parameter);
  }

  LogicalResult seed(const FileShard &shard) {
    llvm::Expected<llvm::GlobPattern> glob =
        llvm::GlobPattern::create(shard.tensors.text, 64);
    if (!glob)
      return error(shard.tensors)
             << "'" << shard.tensors.text
             << "' is not a pattern: " << llvm::toString(glob.takeError());
    bool matched = false;
    for (auto &[name, value] : tensors)
      if (name == shard.tensors.text || glob->match(name)) {
        matched = true;
        PARTITA_TRY(apply(shard, name, value));
      }
    if (!matched)
      return error(shard.tensors)
             << "no weight and no input matches '" << shard.tensors.text << "'"
             << didYouMean(shard.tensors.text, names);
    return success();
  }

private:
  void add(StringRef name, Value value) {
    tensors.push_back({name, value});
    names.push_back(name);
  }

  InFlightDiagnostic error(const FileText &at) {
    return emitError(
        FileLineColLoc::get(function.getContext(), path, at.line, at.column));
  }

  LogicalResult apply(const FileShard &shard, StringRef name, Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getRank() != static_cast<int64_t>(shard.dims.size()))
      return error(shard.tensors)
             << "'" << name << "' has "
             << abi::countOf(type.getRank(), "dimension")
             << ", and the list is for " << shard.dims.size()
             << ": give an entry for each dimension, null where it is whole";
    Sharding sharding;
    for (auto [dim, said] : llvm::enumerate(shard.dims)) {
      DimSharding &cut = sharding.emplace_back();
      for (const FileText &axis : said.axes)
        cut.axes.push_back(StringAttr::get(function.getContext(), axis.text));
      if (cut.isWhole())
        continue;
      cut.blocks = said.blocks;
      // An axis of one device cuts nothing.
      if (llvm::any_of(cut.axes,
                       [&](StringAttr axis) { return !axes.getSize(axis); })) {
        cut = {};
        continue;
      }
      const int64_t parts = axes.getSize(cut.axes) * said.blocks,
                    size = type.getDimSize(dim);
      // One that does not divide is cut where the ops that read it allow it.
      if (size < parts || size % said.blocks != 0)
        return error(said.axes[0])
               << "dimension " << dim << " of '" << name << "' has the size "
               << size << ", which cannot be cut into " << parts
               << " equal parts";
    }
    if (Sharding known = getSharding(value);
        !isWhole(known) && !isSame(known, sharding))
      return error(shard.tensors)
             << "'" << name << "' is cut by another entry already";
    // A tensor whose dimensions are all null stays whole.
    if (!axes.empty() && llvm::all_of(shard.dims, [](const FileShardDim &dim) {
          return dim.axes.empty();
        }))
      fixSharding(value, sharding);
    else
      setSharding(value, sharding);
    return success();
  }

  func::FuncOp function;
  StringRef path;
  const Axes axes;
  SmallVector<std::pair<StringRef, Value>> tensors;
  SmallVector<StringRef> names;
};

/// Finds what a person cut and an op must have whole, because it sums over it.
class SumChecker {
public:
  explicit SumChecker(func::FuncOp function)
      : block(function.getBody().front()), propagation(function) {}

  LogicalResult check() {
    for (BlockArgument argument : block.getArguments())
      propagation.seedWritten(argument);
    for (auto parameter : block.getOps<nn::ParameterOp>())
      propagation.seedWritten(parameter);
    propagation.run();
    for (Operation &op : block.without_terminator())
      if (!rates.isLoad(&op) && failed(check(&op)))
        return failure();
    return success();
  }

private:
  LogicalResult check(Operation *op) {
    auto shardable = dyn_cast<nn::ShardableOpInterface>(op);
    if (!shardable)
      return success();
    const nn::ShardingRule rule = shardable.getShardingRule();
    for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands)) {
      // What a micro-batch brings is gathered first, which is exact.
      nn::ParameterOp cut =
          rates.isLoad(operand) ? findSharding(operand) : nn::ParameterOp();
      if (!cut)
        continue;
      FactorShardings factors;
      (void)addSharding(rule, dims, propagation.getSharding(operand),
                        propagation.getAxes(), factors);
      for (auto [factor, how] : llvm::zip(rule.factors, factors))
        if (!how.isWhole() && isRoundingSum(op, factor))
          return op->emitError("'")
                 << nn::getNodeName(op) << "' sums over a dimension of '"
                 << getName(cut) << "' that is cut along '"
                 << how.axes[0].getValue()
                 << "': joined sums round differently, so the result is not "
                    "reproducible; cut another dimension of it, or leave out "
                    "`reproducible`";
    }
    return success();
  }

  /// A weight that a person cut, on which a value depends.
  static nn::ParameterOp findSharding(Value value) {
    llvm::SetVector<Value> values;
    values.insert(value);
    for (size_t i = 0; i < values.size(); ++i) {
      Operation *op = values[i].getDefiningOp();
      if (auto parameter = dyn_cast_or_null<nn::ParameterOp>(op);
          parameter && !isWhole(getSharding(parameter)))
        return parameter;
      if (op)
        values.insert(op->operand_begin(), op->operand_end());
    }
    return {};
  }

  static StringRef getName(nn::ParameterOp parameter) {
    auto weight = SymbolTable::lookupNearestSymbolFrom<nn::WeightOp>(
        parameter, parameter.getWeightAttr());
    return weight ? weight.getOrigin() : parameter.getWeight();
  }

  Block &block;
  Propagation propagation;
  analysis::Rates rates;
};

struct DistSeedPass : impl::DistSeedPassBase<DistSeedPass> {
  using DistSeedPassBase::DistSeedPassBase;

  LogicalResult run(func::FuncOp function) override {
    PartitionFile read =
        PARTITA_TRY(readPartitionFile(getOperation().getLoc(), file));
    Seeder seeder(function, file);
    for (const FileShard &shard : read.shards)
      PARTITA_TRY(seeder.seed(shard));
    return failure(function->hasAttr(dist::kReproducibleAttr) &&
                   failed(SumChecker(function).check()));
  }
};

} // namespace
} // namespace partita::shard
