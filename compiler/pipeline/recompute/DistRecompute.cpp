//===- DistRecompute.cpp - Compute again instead of keeping ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/BlockOrder.h"
#include "compiler/analysis/Recomputed.h"
#include "compiler/cost/CostModels.h"
#include "compiler/model/Decision.h"
#include "compiler/model/ModelNodes.h"
#include "compiler/model/NodeNames.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/partition/StageOrder.h"
#include "compiler/pipeline/phases/UnitPhases.h"
#include "compiler/pipeline/recompute/KeptValues.h"

#include "dialects/nn/NNDialect.h"
#include "dialects/support/Try.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <set>

using namespace mlir;

namespace partita::pipeline {

#define GEN_PASS_DEF_DISTRECOMPUTEPASS
#include "compiler/pipeline/Passes.h.inc"

namespace {

using dist::Phase;

/// Whether keeping a result is cheaper than computing it again.
bool isCostly(Operation *op) {
  auto costed = dyn_cast<nn::CostOpInterface>(op);
  if (!costed)
    return true;
  switch (costed.getCost().kind) {
  case nn::CostKind::dot:
  case nn::CostKind::conv:
  case nn::CostKind::attention:
  case nn::CostKind::recurrent:
    return true;
  case nn::CostKind::movement:
  case nn::CostKind::pointwise:
  case nn::CostKind::reduction:
  case nn::CostKind::none:
    break;
  }
  return false;
}

/// Whether an op computes the same whenever it is computed: it adds to no sum
/// over micro-batches, and no other device takes part.
bool isRepeatable(Operation *op) {
  return isa<nn::NNDialect>(op->getDialect()) && isMemoryEffectFree(op) &&
         !isa<nn::AccumulatorOp, nn::SumMicroBatchesOp>(op) &&
         llvm::none_of(op->getOperands(), [](Value operand) {
           return operand.getDefiningOp<nn::AccumulatorOp>();
         });
}

class Recomputer {
public:
  Recomputer(func::FuncOp function, const PartitionGraph &graph,
             ArrayRef<int64_t> order, BackwardUnits backward,
             llvm::DenseSet<StringRef> named, bool standard, bool full)
      : function(function), graph(graph), order(order), backward(backward),
        phases(function), units(function, order, backward),
        named(std::move(named)), standard(standard), full(full) {}

  void run() {
    function.walk([&](Operation *op) {
      if (auto cluster = op->getAttrOfType<nn::ClusterAttr>(nn::kClusterAttr))
        nextCluster = std::max(nextCluster, cluster.getNumber() + 1);
    });
    double allNs = 0, repeatedNs = 0;
    for (const ClusterNode &node : graph.nodes)
      if (const Phase phase = phases.get(node.ops.front());
          phase != Phase::prologue && phase != Phase::update)
        allNs += getNs(node);
    int64_t bytes = 0, allBytes = 0;
    std::set<StringRef> names;
    // All is decided before anything changes.
    std::vector<std::pair<StageClusters, KeptValues>> decisions;
    for (int64_t stage : order) {
      const bool atOnce = stage == order.back() && !backward.ofLastStage;
      StageClusters clusters = collect(stage, atOnce);
      KeptValues kept =
          chooseKeptValues(graph, clusters, full, atOnce, [&](int cluster) {
            return mayRepeat(graph.nodes[cluster]);
          });
      bytes += kept.bytes;
      allBytes += kept.allBytes;
      for (int cluster : kept.repeated) {
        repeatedNs += getNs(graph.nodes[cluster]);
        for (Operation *op : graph.nodes[cluster].ops)
          for (StringRef name : getNodeNames(op->getLoc()))
            names.insert(name);
      }
      decisions.emplace_back(std::move(clusters), std::move(kept));
    }
    for (const auto &[clusters, kept] : decisions)
      repeat(clusters, kept.repeated);
    analysis::putBehindOperands(function.getBody().front());
    Builder b(function.getContext());
    function->setAttr(
        kRecomputationAttr,
        b.getDictionaryAttr(
            {b.getNamedAttr("nodes", b.getI64IntegerAttr(names.size())),
             b.getNamedAttr(
                 "work",
                 b.getF64FloatAttr(allNs > 0 ? 100 * repeatedNs / allNs : 0)),
             b.getNamedAttr("kept", b.getI64IntegerAttr(bytes)),
             b.getNamedAttr("all", b.getI64IntegerAttr(allBytes))}));
  }

private:
  static double getNs(const ClusterNode &node) {
    for (Operation *op : node.ops)
      if (auto price = op->getAttrOfType<DenseF64ArrayAttr>(kPriceAttr))
        return price[0];
    return 0;
  }

  /// Gradients of a unit of their own read what the unit before keeps for them.
  /// Where they follow in the same unit, they are what the loss does not need.
  StageClusters collect(int64_t stage, bool atOnce) const {
    StageClusters found;
    for (auto [index, node] : llvm::enumerate(graph.nodes)) {
      Operation *op = node.ops.front();
      if (getStage(op) != stage)
        continue;
      const Phase phase = atOnce ? phases.get(op) : units.get(op);
      if (phase == Phase::forward)
        found.forward.push_back(static_cast<int>(index));
      else if (phase != Phase::prologue && phase != Phase::update)
        found.backward.push_back(static_cast<int>(index));
    }
    return found;
  }

  bool mayRepeat(const ClusterNode &node) const {
    if (node.work.empty() || !llvm::all_of(node.ops, isRepeatable))
      return false;
    return full || (standard && llvm::none_of(node.ops, isCostly)) ||
           llvm::any_of(node.ops, [&](Operation *op) {
             return llvm::any_of(
                 getNodeNames(op->getLoc()),
                 [&](StringRef name) { return named.contains(name); });
           });
  }

  /// Lets gradients read clones of clusters.
  void repeat(const StageClusters &stage, ArrayRef<int> repeated) {
    llvm::DenseSet<Operation *> late; // what reads clones
    for (int cluster : stage.backward)
      late.insert(graph.nodes[cluster].ops.begin(),
                  graph.nodes[cluster].ops.end());
    for (int cluster : repeated)
      keepResults(graph.nodes[cluster]);
    // Readers first: a clone may read another one.
    for (int cluster : llvm::reverse(repeated))
      clone(graph.nodes[cluster], late);
    for (int cluster : llvm::reverse(repeated))
      eraseUnused(graph.nodes[cluster]);
  }

  static SmallVector<Operation *> getOps(const ClusterNode &node) {
    SmallVector<Operation *> ops(node.ops.begin(), node.ops.end());
    for (Operation *op : node.work)
      if (!llvm::is_contained(ops, op))
        ops.push_back(op);
    llvm::sort(
        ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    return ops;
  }

  /// The cluster and its clone write the same, whoever reads it: they are the
  /// same code.
  static void keepResults(const ClusterNode &node) {
    llvm::DenseSet<Operation *> inside(node.work.begin(), node.work.end());
    Builder b(node.ops.front()->getContext());
    for (Operation *op : node.work) {
      SmallVector<int64_t> numbers;
      for (OpResult result : op->getResults())
        if (op->hasAttr(nn::kClusterAttr) &&
            llvm::any_of(result.getUsers(), [&](Operation *user) {
              return !inside.contains(user);
            }))
          numbers.push_back(result.getResultNumber());
      if (!numbers.empty())
        op->setAttr(analysis::kYieldedAttr, b.getDenseI64ArrayAttr(numbers));
    }
  }

  void clone(const ClusterNode &node, llvm::DenseSet<Operation *> &late) {
    const SmallVector<Operation *> ops = getOps(node);
    Operation *first = nullptr;
    for (Operation *op : ops)
      for (Operation *user : op->getUsers())
        if (late.contains(user) && (!first || user->isBeforeInBlock(first)))
          first = user;
    if (!first)
      return;
    OpBuilder b(first);
    IRMapping mapping;
    const int64_t number = nextCluster++;
    SmallVector<Operation *> clones;
    for (Operation *op : ops) {
      Operation *copy = b.clone(*op, mapping);
      if (auto cluster = op->getAttrOfType<nn::ClusterAttr>(nn::kClusterAttr))
        copy->setAttr(
            nn::kClusterAttr,
            nn::ClusterAttr::get(b.getContext(), number, cluster.getKind()));
      if (!isa<nn::ConstantOp>(op))
        copy->setAttr(analysis::kRecomputedAttr, b.getUnitAttr());
      clones.push_back(copy);
    }
    for (auto [op, copy] : llvm::zip(ops, clones))
      for (auto [from, to] : llvm::zip(op->getResults(), copy->getResults()))
        Value(from).replaceUsesWithIf(
            to, [&](OpOperand &use) { return late.contains(use.getOwner()); });
    late.insert(clones.begin(), clones.end());
  }

  /// What only gradients have read.
  static void eraseUnused(const ClusterNode &node) {
    const SmallVector<Operation *> ops = getOps(node);
    const llvm::DenseSet<Operation *> inside(ops.begin(), ops.end());
    for (Operation *op : ops)
      for (Operation *user : op->getUsers())
        if (!inside.contains(user))
          return;
    for (Operation *op : llvm::reverse(ops))
      op->erase();
  }

  func::FuncOp function;
  const PartitionGraph &graph;
  ArrayRef<int64_t> order;
  const BackwardUnits backward;
  const Phases phases;
  const UnitPhases units;
  const llvm::DenseSet<StringRef> named;
  const bool standard, full;
  int64_t nextCluster = 0;
};

struct DistRecomputePass : impl::DistRecomputePassBase<DistRecomputePass> {
  using DistRecomputePassBase::DistRecomputePassBase;

  LogicalResult run(func::FuncOp function) override {
    const ModelNodes all(function);
    auto named = PARTITA_TRY(findNamed(function, all));
    if (!llvm::is_contained({"none", "standard", "full"}, kind))
      return function.emitError() << "there is no recomputation '" << kind
                                  << "': it is none, standard or full";
    auto models = PARTITA_TRY(CostModels::get(function));
    FailureOr<PartitionGraph> graph =
        PartitionGraph::build(function, *models->getAll().front());
    FailureOr<SmallVector<int64_t>> order = getStageOrder(function);
    if (failed(graph) || failed(order))
      return failure();
    BackwardUnits backward = PARTITA_TRY(getBackwardUnits(function, *order));
    if (Phases(function).isTrained())
      Recomputer(function, *graph, *order, backward, std::move(named),
                 kind == "standard", kind == "full")
          .run();
    return success();
  }

  /// The nodes that globs name.
  FailureOr<llvm::DenseSet<StringRef>> findNamed(func::FuncOp function,
                                                 const ModelNodes &all) {
    llvm::DenseSet<StringRef> found;
    for (const std::string &text : nodes) {
      llvm::Expected<llvm::GlobPattern> glob =
          llvm::GlobPattern::create(text, 64);
      if (!glob)
        return emitError(function.getLoc())
               << "--recompute-nodes " << text << ": "
               << llvm::toString(glob.takeError());
      const std::vector<int> matched = all.match(*glob);
      if (matched.empty())
        return emitError(function.getLoc())
               << "--recompute-nodes " << text << " names " << all.none()
               << didYouMean(text, all.getKeys())
               << "; --list-nodes lists the nodes";
      for (int node : matched)
        found.insert(all.getNames()[node]);
    }
    return found;
  }
};

} // namespace
} // namespace partita::pipeline
