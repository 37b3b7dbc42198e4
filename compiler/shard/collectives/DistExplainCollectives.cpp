//===- DistExplainCollectives.cpp - What would spare a collective ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Rates.h"
#include "compiler/cost/CostModels.h"
#include "compiler/model/ModelFunction.h"
#include "compiler/shard/Passes.h"
#include "compiler/shard/ShardingCosts.h"
#include "dialects/support/Try.h"
#include "runtime/abi/Text.h"

#include "llvm/ADT/StringExtras.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

using namespace mlir;

namespace partita::shard {

#define GEN_PASS_DEF_DISTEXPLAINCOLLECTIVESPASS
#include "compiler/shard/Passes.h.inc"

namespace {

/// Of a collective, tensors that are tried, the nearest first.
constexpr size_t kMostTensors = 6;
/// Of a model: each takes as long as a propagation.
constexpr int kMostTrials = 512;
/// A change of more tensors is no small one.
constexpr size_t kMostChanges = 6;

/// What is said of the model's own tensors, by their position among them: how
/// each is cut, that it is whole, or nothing.
using AllShardings = std::vector<std::optional<Sharding>>;

/// Tries other cuts of weights and inputs.
class Explainer {
public:
  Explainer(func::FuncOp function, const CostModel &machine)
      : block(function.getBody().front()), propagation(function),
        costs(propagation, machine) {
    SymbolTable symbols(function->getParentOfType<ModuleOp>());
    for (BlockArgument argument : block.getArguments())
      if (auto name = function.getArgAttrOfType<StringAttr>(
              argument.getArgNumber(), nn::kNameAttr))
        addTensor(argument, name.getValue());
    for (auto parameter : block.getOps<nn::ParameterOp>())
      if (auto weight = symbols.lookup<nn::WeightOp>(parameter.getWeight()))
        addTensor(parameter, weight.getOrigin());
    for (Operation &op : block.without_terminator())
      all.insert(&op);
  }

  void explain() {
    AllShardings given;
    for (Value tensor : tensors)
      given.push_back(getShardingAttr(tensor)
                          ? std::optional(getSharding(tensor))
                          : std::nullopt);
    takeWritten();
    const SmallVector<Exchange> exchanges = getExchanges();
    before = measure(exchanges);
    SmallVector<std::pair<Exchange, SmallVector<size_t>>> causes;
    for (const Exchange &exchange : exchanges)
      causes.push_back({exchange, findTensors(exchange)});
    propagate(given);
    isFree = followsFromTensors();
    for (auto &[exchange, near] : causes) {
      std::optional<Change> best;
      auto tryAll = [&](ArrayRef<size_t> changed, const Sharding &sharding) {
        if (auto change =
                trySharding(exchange, exchanges, given, changed, sharding);
            change && (!best || change->after.ns < best->after.ns))
          best = std::move(change);
      };
      for (size_t tensor : near)
        for (const Sharding &sharding : getOtherSharding(tensor))
          tryAll(tensor, sharding);
      // Where one would follow the others again: all of them whole.
      for (size_t count = 2; !best && count <= near.size(); ++count)
        tryAll(ArrayRef(near).take_front(count), {});
      report(exchange, given, best);
    }
    emitReports();
  }

private:
  /// Of the whole model.
  struct Measure {
    double ns = 0;
    int64_t sentBytes = 0, weightBytes = 0; ///< of each device
  };
  struct Change {
    AllShardings sharding;
    Measure after;
  };

  void addTensor(Value value, StringRef name) {
    numbers[value] = tensors.size();
    tensors.push_back(value);
    names.push_back(name);
  }

  /// How everything is cut now.
  void takeWritten() {
    propagation.clear();
    for (BlockArgument argument : block.getArguments())
      propagation.fix(argument, getSharding(argument));
    for (Operation *op : all)
      for (Value result : op->getResults())
        propagation.fix(result, getSharding(result));
    propagation.run();
  }

  void propagate(const AllShardings &sharding) {
    propagation.clear();
    for (Operation *op : all)
      if (op->hasAttr(dist::kWholeAttr))
        for (Value result : op->getResults())
          propagation.fix(result, {});
    for (auto [tensor, cut] : llvm::zip(tensors, sharding))
      if (cut)
        propagation.fix(tensor, *cut);
    propagation.run();
  }

  /// Whether the shardings of all results follow from those of weights and
  /// inputs. They do not if the model itself says how results are cut.
  bool followsFromTensors() const {
    return llvm::all_of(all, [&](Operation *op) {
      return llvm::all_of(op->getResults(), [&](Value result) {
        return isSame(propagation.getSharding(result), getSharding(result));
      });
    });
  }

  SmallVector<Exchange> getExchanges() {
    SmallVector<Exchange> exchanges;
    for (Operation *op : all)
      for (Value result : op->getResults())
        llvm::append_range(exchanges, costs.getExchanges(result));
    return exchanges;
  }

  Measure measure(ArrayRef<Exchange> exchanges) {
    Measure sum;
    sum.ns = costs.getNs(all);
    for (const Exchange &exchange : exchanges)
      sum.sentBytes += exchange.sentBytes;
    for (Value tensor : tensors)
      if (!isa<BlockArgument>(tensor))
        sum.weightBytes += nn::getByteSize(getLocalType(
            cast<RankedTensorType>(tensor.getType()),
            propagation.getSharding(tensor), propagation.getAxes()));
    return sum;
  }

  /// The tensors whose cuts led to a collective, the nearest first.
  SmallVector<size_t> findTensors(const Exchange &exchange) {
    llvm::SetVector<Operation *> ops;
    ops.insert(exchange.value.getDefiningOp());
    if (exchange.reader && !exchange.reader->hasTrait<OpTrait::IsTerminator>())
      ops.insert(exchange.reader);
    SmallVector<size_t> found;
    llvm::DenseSet<Value> seen;
    for (size_t i = 0; i < ops.size() && found.size() < kMostTensors; ++i)
      for (Value operand : ops[i]->getOperands()) {
        // What is whole has no part in it.
        if (isWhole(propagation.getSharding(operand)) ||
            !seen.insert(operand).second)
          continue;
        if (auto it = numbers.find(operand); it != numbers.end())
          found.push_back(it->second);
        else if (Operation *op = operand.getDefiningOp())
          ops.insert(op);
      }
    if (found.size() > kMostTensors)
      found.resize(kMostTensors);
    return found;
  }

  /// Whole, or along another dimension.
  SmallVector<Sharding> getOtherSharding(size_t tensor) {
    SmallVector<Sharding> others(1);
    const Sharding sharding = getSharding(tensors[tensor]);
    auto type = cast<RankedTensorType>(tensors[tensor].getType());
    auto cut = llvm::find_if(sharding,
                             [](const DimSharding &c) { return !c.isWhole(); });
    if (cut == sharding.end())
      return others;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (dim != cut - sharding.begin() &&
          type.getDimSize(dim) % propagation.getAxes().getSize(cut->axes) == 0)
        others.emplace_back(type.getRank())[dim] = {cut->axes, 1};
    return others;
  }

  /// Cuts tensors in another way, and lets vectors follow. Fails if the
  /// collective is still there, or if there is one that was not.
  std::optional<Change> trySharding(const Exchange &exchange,
                                    ArrayRef<Exchange> known,
                                    const AllShardings &given,
                                    ArrayRef<size_t> changed,
                                    const Sharding &sharding) {
    for (bool follow : {false, true}) {
      if (!isFree || ++trials > kMostTrials)
        return std::nullopt;
      Change change{given, {}};
      for (size_t tensor : changed)
        change.sharding[tensor] = sharding;
      if (follow) {
        // First what a person would say, then what follows from it.
        AllShardings said = change.sharding;
        for (auto [index, other] : llvm::enumerate(tensors))
          if (!llvm::is_contained(changed, index) &&
              cast<RankedTensorType>(other.getType()).getRank() < 2)
            said[index].reset();
        propagate(said);
        for (auto [index, other] : llvm::enumerate(tensors))
          if (const Sharding &cut = propagation.getSharding(other);
              !llvm::is_contained(changed, index) &&
              (given[index] || !isWhole(cut)))
            change.sharding[index] = cut;
        if (countChanges(given, change.sharding) > kMostChanges)
          continue;
      }
      propagate(change.sharding);
      const SmallVector<Exchange> left = getExchanges();
      if (left.size() >= known.size() || contains(left, exchange) ||
          !llvm::all_of(left, [&](const Exchange &each) {
            return contains(known, each);
          }))
        continue;
      change.after = measure(left);
      return change;
    }
    return std::nullopt;
  }

  static bool contains(ArrayRef<Exchange> all, const Exchange &exchange) {
    return llvm::any_of(all, [&](const Exchange &each) {
      return each.value == exchange.value && !each.reader == !exchange.reader &&
             each.kinds == exchange.kinds;
    });
  }

  static bool differ(const std::optional<Sharding> &a,
                     const std::optional<Sharding> &b) {
    return !isSame(a.value_or(Sharding()), b.value_or(Sharding()));
  }

  static size_t countChanges(const AllShardings &a, const AllShardings &b) {
    size_t count = 0;
    for (auto [left, right] : llvm::zip(a, b))
      count += differ(left, right);
    return count;
  }

  //===--- Words ----------------------------------------------------------===//

  static std::string describeDims(const Sharding &sharding) {
    SmallVector<std::string> dims;
    for (auto [dim, cut] : llvm::enumerate(sharding))
      if (!cut.isWhole())
        dims.push_back(std::to_string(dim));
    return (dims.size() == 1 ? "dimension " : "dimensions ") +
           llvm::join(dims, ", ");
  }

  std::string describe(const AllShardings &from, const AllShardings &to) const {
    SmallVector<std::string> parts, whole;
    for (auto [index, name] : llvm::enumerate(names)) {
      if (!differ(from[index], to[index]))
        continue;
      const std::string quoted = "'" + name.str() + "'";
      const Sharding before = from[index].value_or(Sharding()),
                     after = to[index].value_or(Sharding());
      if (isWhole(after))
        whole.push_back(quoted);
      else
        parts.push_back(
            "cut " + quoted + " along " + describeDims(after) +
            (isWhole(before) ? "" : " instead of " + describeDims(before)));
    }
    if (!whole.empty())
      parts.push_back("keep " + llvm::join(whole, ", ") + " whole");
    return llvm::join(parts, ", ");
  }

  static std::string describe(abi::CollectiveKind kind,
                              const std::string &node) {
    switch (kind) {
    case abi::CollectiveKind::all_reduce:
    case abi::CollectiveKind::reduce_scatter:
      return "partial sums of '" + node + "' are joined";
    case abi::CollectiveKind::all_to_all:
      return "parts of '" + node + "' are exchanged";
    case abi::CollectiveKind::all_gather:
      return "parts of '" + node + "' are gathered";
    default:
      llvm_unreachable("no reshard needs another one");
    }
  }

  static std::string describeChange(int64_t before, int64_t after,
                                    StringRef more, StringRef less) {
    if (before == after)
      return "";
    return ", " + (after > before ? more : less).str() + " " +
           abi::bytesText(std::abs(after - before));
  }

  void report(const Exchange &exchange, const AllShardings &given,
              const std::optional<Change> &change) {
    Operation *op = exchange.value.getDefiningOp();
    std::string text;
    llvm::raw_string_ostream remark(text);
    remark << describe(exchange.kinds.front(), nn::getNodeName(op));
    if (exchange.reader && !exchange.reader->hasTrait<OpTrait::IsTerminator>())
      remark << " for '" << nn::getNodeName(exchange.reader) << "'";
    remark << ": each device sends " << abi::bytesText(exchange.sentBytes)
           << (rates.getRate(op) == analysis::Rate::update ? " a step"
                                                           : " a micro-batch")
           << ", predicted " << abi::timeText(exchange.ns) << "; ";
    if (!change)
      remark << (!isFree ? "other cuts were not tried, as the model itself "
                           "says how results are cut"
                 : trials > kMostTrials
                     ? "other cuts were not tried any more, as there are many"
                     : "no other cut of a tensor near it spares that without "
                       "another collective");
    else
      describe(*change, given, remark);
    reports.push_back({op->getLoc(), std::move(text)});
  }

  void describe(const Change &change, const AllShardings &given,
                llvm::raw_ostream &remark) {
    const double ns = change.after.ns - before.ns;
    remark << "to spare that, " << describe(given, change.sharding) << ": by "
           << "prediction a micro-batch takes " << abi::timeText(std::abs(ns))
           << (ns > 0 ? " longer" : " less")
           << describeChange(before.sentBytes, change.after.sentBytes,
                             "a device sends more by", "a device sends less by")
           << describeChange(before.weightBytes, change.after.weightBytes,
                             "its weights grow by", "its weights shrink by");
  }

  /// One remark for those that differ in the numbers of their names alone: of
  /// repeated layers.
  void emitReports() {
    std::vector<SmallVector<size_t>> groups;
    std::map<std::string, size_t> known;
    for (auto [index, each] : llvm::enumerate(reports)) {
      auto [it, isNew] =
          known.try_emplace(foldNames(each.second), groups.size());
      if (isNew)
        groups.emplace_back();
      groups[it->second].push_back(index);
    }
    for (ArrayRef<size_t> members : groups) {
      const auto &[loc, text] = reports[members.front()];
      InFlightDiagnostic remark = emitRemark(loc);
      remark << text;
      if (members.size() > 1)
        remark << "; " << members.size() - 1 << " more like it, to '"
               << nn::getNodeName(reports[members.back()].first) << "'";
    }
  }

  /// The text, in whose quoted names each number is `*`.
  static std::string foldNames(StringRef text) {
    SmallVector<StringRef> parts;
    text.split(parts, '\'');
    std::string folded;
    for (auto [index, part] : llvm::enumerate(parts))
      folded += index % 2 ? abi::foldNumbers(part.str()) : part.str();
    return folded;
  }

  Block &block;
  Propagation propagation;
  ShardingCosts costs;
  analysis::Rates rates;
  llvm::SetVector<Operation *> all;
  SmallVector<Value> tensors; ///< the model's inputs and weights
  SmallVector<StringRef> names;
  llvm::DenseMap<Value, size_t> numbers;
  Measure before;
  bool isFree = true; ///< to cut weights and inputs otherwise
  int trials = 0;
  std::vector<std::pair<Location, std::string>> reports;
};

struct DistExplainCollectivesPass
    : impl::DistExplainCollectivesPassBase<DistExplainCollectivesPass> {
  using DistExplainCollectivesPassBase::DistExplainCollectivesPassBase;

  LogicalResult run(func::FuncOp function) override {
    if (Axes(function).empty())
      return success();
    auto models = PARTITA_TRY(CostModels::get(function));
    Explainer(function, models->at(0)).explain();
    markAllAnalysesPreserved();
    return success();
  }
};

} // namespace
} // namespace partita::shard
