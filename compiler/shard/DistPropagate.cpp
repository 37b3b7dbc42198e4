//===- DistPropagate.cpp - Shardings of all tensors -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Rates.h"
#include "compiler/codegen/Backend.h"
#include "compiler/model/Decision.h"
#include "compiler/model/ModelFunction.h"
#include "compiler/shard/CollectAnnotations.h"
#include "compiler/shard/NodeTensors.h"
#include "compiler/shard/Passes.h"
#include "compiler/shard/Propagation.h"
#include "compiler/shard/ShardingCosts.h"
#include "dialects/plan/PlanDialect.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace partita::shard {

#define GEN_PASS_DEF_DISTPROPAGATEPASS
#include "compiler/shard/Passes.h.inc"

namespace {

struct DistPropagatePass : impl::DistPropagatePassBase<DistPropagatePass> {
  LogicalResult run(func::FuncOp function) override {
    Block &block = function.getBody().front();
    if (Axes(function).empty())
      return success();
    SmallVector<Operation *> ops;
    for (Operation &op : block.without_terminator())
      ops.push_back(&op);
    Propagation propagation = propagate(function, ops);
    if (function->hasAttr(dist::kReproducibleAttr))
      makeReproducible(function, ops, propagation);
    remarkPadding(propagation, ops);
    for (BlockArgument argument : block.getArguments())
      setSharding(argument, propagation.getSharding(argument));
    for (Operation &op : block.without_terminator())
      if (op.getNumResults() == 1)
        setSharding(op.getResult(0), propagation.getSharding(op.getResult(0)));
    record(function);
    return success();
  }

  using Seeds = SmallVector<std::pair<Value, Sharding>>;

  /// From what is written on the values of a function. Ops that every device
  /// computes whole have whole results.
  static Propagation propagate(func::FuncOp function,
                               ArrayRef<Operation *> ops) {
    Seeds seeds;
    auto add = [&](Value value) {
      if (getShardingAttr(value))
        seeds.push_back({value, getSharding(value)});
    };
    for (Operation *op : ops)
      if (op->hasAttr(dist::kWholeAttr))
        for (Value result : op->getResults())
          seeds.push_back({result, {}});
    for (BlockArgument argument : function.getArguments())
      add(argument);
    for (Operation *op : ops)
      for (Value result : op->getResults())
        add(result);
    Propagation propagation(function);
    roundUp(propagation, ops, seeds);
    spread(propagation, seeds);
    return propagation;
  }

  static void spread(Propagation &propagation, const Seeds &seeds) {
    for (auto &[value, sharding] : seeds)
      propagation.fix(value, sharding);
    propagation.run();
  }

  /// Heads and the like that do not divide: rounds up the parts of what
  /// is split into them.
  static void roundUp(Propagation &propagation, ArrayRef<Operation *> ops,
                      Seeds &seeds) {
    auto tryOut = [&] {
      spread(propagation, seeds);
      SmallVector<NeededAlignment> needed =
          propagation.getNeededAlignments(ops);
      propagation.undo();
      return needed;
    };
    SmallVector<NeededAlignment> needed = tryOut();
    for (auto &[value, sharding] : seeds) {
      if (needed.empty())
        return;
      const Sharding before = sharding;
      sharding = propagation.withAlignments(value, sharding, needed);
      if (sharding == before)
        continue;
      if (auto left = tryOut(); left.size() < needed.size())
        needed = left;
      else
        sharding = before;
    }
  }

  /// One remark for all that is padded in the same way.
  static void remarkPadding(const Propagation &propagation,
                            ArrayRef<Operation *> ops) {
    const Axes &axes = propagation.getAxes();
    SmallVector<std::pair<int64_t, DimSharding>> known;
    for (Operation *op : ops) {
      const nn::ShardingRule *rule = propagation.getRule(op);
      if (!rule)
        continue;
      const FactorShardings factors = propagation.getFactorShardings(op);
      for (const nn::DimFactors &dims : rule->operands)
        for (ArrayRef<int64_t> list : dims)
          for (int64_t factor : list) {
            const int64_t size = rule->factors[factor].size;
            const DimSharding &cut = factors[factor];
            if (list.size() < 2 || cut.isWhole() || isEven(size, cut, axes) ||
                llvm::is_contained(known, std::pair(size, cut)))
              continue;
            known.push_back({size, cut});
            const int64_t devices = axes.getSize(cut.axes);
            emitRemark(op->getLoc(), "'")
                << nn::getNodeName(op) << "' splits a dimension into " << size
                << " parts, which " << devices
                << " devices do not divide: it is computed as if there were "
                << getPartSize(size, cut, axes) * devices;
          }
    }
  }

  //===--- Reproducible results -------------------------------------------===//

  static void makeReproducible(func::FuncOp function, ArrayRef<Operation *> ops,
                               Propagation &propagation) {
    // What is computed together rounds together: it is cut together, or not.
    llvm::SetVector<Operation *> separated;
    while (keepTogether(ops, propagation, separated) ||
           keepCalls(ops, propagation))
      propagation = propagate(function, ops);
    if (!separated.empty())
      emitRemark(separated[0]->getLoc())
          << describe(separated.getArrayRef())
          << (separated.size() == 1 ? " is" : " are")
          << " computed whole by every device: the cut would separate it "
             "from what is computed together with it, and so change how it "
             "rounds, which `reproducible` forbids";
    SmallVector<Operation *> calls;
    for (Operation *op : ops)
      if (isCutCall(op, propagation))
        calls.push_back(op);
    if (!calls.empty())
      emitRemark(calls[0]->getLoc())
          << describe(calls) << (calls.size() == 1 ? " is" : " are")
          << " cut, and computed by a library whose rounding may depend on the "
             "size of a part: another cut may give other bits, although "
             "`reproducible` is set";
    remarkSums(function, ops);
  }

  /// Sums over micro-batches, which replicas add up.
  static void remarkSums(func::FuncOp function, ArrayRef<Operation *> ops) {
    const Axes axes(function);
    const bool hasSums =
        llvm::any_of(ops, llvm::IsaPred<nn::SumMicroBatchesOp>);
    if (hasSums && axes.getData() && axes.getSize(axes.getData()) > 2 &&
        !codegen::getBackend(function).hasOrderedSums())
      emitRemark(UnknownLoc::get(function.getContext()))
          << "NCCL decides in which order it adds up the gradients of "
          << axes.getSize(axes.getData())
          << " replicas: another number of them may give other bits, although "
             "`reproducible` is set";
  }

  /// The first node, and how many others there are.
  static std::string describe(ArrayRef<Operation *> ops) {
    std::string text = "'" + nn::getNodeName(ops[0]) + "'";
    if (ops.size() > 1)
      text += " and " + std::to_string(ops.size() - 1) +
              (ops.size() == 2 ? " other" : " others");
    return text;
  }

  /// Whether a library sums floats in an op that is cut. Libraries choose their
  /// code, and with it the order of a sum, also by the sizes that are not
  /// summed over.
  static bool isCutCall(Operation *op, const Propagation &propagation) {
    auto cluster = op->getAttrOfType<nn::ClusterAttr>(nn::kClusterAttr);
    auto costed = dyn_cast<nn::CostOpInterface>(op);
    if (!cluster || cluster.getKind() != nn::ClusterKind::call || !costed ||
        isWhole(propagation.getFactorShardings(op)) ||
        !isa<FloatType>(getElementTypeOrSelf(op->getResult(0))))
      return false;
    switch (costed.getCost().kind) {
    case nn::CostKind::dot:
    case nn::CostKind::conv:
    case nn::CostKind::attention:
    case nn::CostKind::recurrent:
      return true;
    default:
      return false;
    }
  }

  /// Marks the clusters in which a value would have to be cut in another way
  /// than it is made, to be computed whole. `separated` gets the ops that read
  /// such values. Returns whether there are more of them.
  static bool keepTogether(ArrayRef<Operation *> ops,
                           const Propagation &propagation,
                           llvm::SetVector<Operation *> &separated) {
    analysis::Rates rates;
    llvm::DenseSet<Attribute> clusters;
    for (Operation *op : ops) {
      const Attribute cluster = op->getAttr(nn::kClusterAttr);
      if (!cluster || rates.isLoad(op))
        continue;
      for (OpOperand &operand : op->getOpOperands()) {
        Operation *producer = operand.get().getDefiningOp();
        if (!producer || rates.isLoad(producer) ||
            producer->getAttr(nn::kClusterAttr) != cluster ||
            isRead(propagation, operand))
          continue;
        clusters.insert(cluster);
        separated.insert(op);
      }
    }
    for (Operation *op : ops)
      if (clusters.contains(op->getAttr(nn::kClusterAttr)))
        makeWhole(op);
    return !clusters.empty();
  }

  /// Marks the calls to be computed whole whose parts the library does not
  /// compute as one call. Returns whether there are some.
  static bool keepCalls(ArrayRef<Operation *> ops,
                        const Propagation &propagation) {
    llvm::MapVector<Attribute, SmallVector<Operation *>> calls;
    for (Operation *op : ops)
      if (auto cluster = op->getAttrOfType<nn::ClusterAttr>(nn::kClusterAttr);
          cluster && cluster.getKind() == nn::ClusterKind::call &&
          !op->hasAttr(dist::kWholeAttr))
        calls[cluster].push_back(op);
    bool found = false;
    for (auto &[cluster, members] : calls) {
      if (isPartCall(members, propagation))
        continue;
      found = true;
      emitRemark(members.back()->getLoc())
          << "'" << nn::getNodeName(members.back())
          << "' is computed whole by every device: the library does not "
             "compute a part of it together with what is computed with it";
      for (Operation *op : members)
        makeWhole(op);
    }
    return found;
  }

  /// Builds a device's part of a call, on stand-ins for its inputs.
  static bool isPartCall(ArrayRef<Operation *> ops,
                         const Propagation &propagation) {
    if (llvm::all_of(ops, [&](Operation *op) {
          return isWhole(propagation.getFactorShardings(op));
        }))
      return true;
    OwningOpRef<ModuleOp> scratch = makeScratch(ops.front());
    Block &block = *scratch->getBody();
    OpBuilder builder = OpBuilder::atBlockEnd(&block);
    llvm::DenseMap<Value, Value> parts;
    SmallVector<Operation *> locals;
    SmallVector<Value> inputs, results;
    for (Operation *op : ops) {
      SmallVector<Value> operands;
      for (OpOperand &operand : op->getOpOperands()) {
        Value &part = parts[operand.get()];
        if (!part) {
          part = block.addArgument(
              getLocalType(cast<RankedTensorType>(operand.get().getType()),
                           propagation.getNeededSharding(operand),
                           propagation.getAxes()),
              op->getLoc());
          inputs.push_back(part);
        }
        operands.push_back(part);
      }
      Operation *local = buildPart(builder, op, propagation, operands);
      locals.push_back(local);
      for (auto [result, part] :
           llvm::zip(op->getResults(), local->getResults())) {
        parts[result] = part;
        if (llvm::any_of(result.getUsers(), [&](Operation *user) {
              return !llvm::is_contained(ops, user);
            }))
          results.push_back(part);
      }
    }
    return static_cast<bool>(
        codegen::getBackend(ops.front()).matchCall(locals, inputs, results));
  }

  static Operation *buildPart(OpBuilder &builder, Operation *op,
                              const Propagation &propagation,
                              ArrayRef<Value> operands) {
    const FactorShardings factors = propagation.getFactorShardings(op);
    if (isWhole(factors)) {
      Operation *local = builder.clone(*op);
      local->setOperands(operands);
      return local;
    }
    const nn::ShardingRule &rule = *propagation.getRule(op);
    SmallVector<Value> begins(factors.size());
    Operation *local = cast<nn::ShardableOpInterface>(op).buildLocal(
        builder, rule, getPartSizes(rule, factors, propagation.getAxes()),
        operands, begins);
    for (NamedAttribute attr : op->getDiscardableAttrs())
      local->setDiscardableAttr(attr.getName(), attr.getValue());
    return local;
  }

  static void makeWhole(Operation *op) {
    op->setAttr(dist::kWholeAttr, UnitAttr::get(op->getContext()));
    op->removeAttr(dist::kShardingAttr);
  }

  /// Whether an op reads an operand as the op before it makes it.
  static bool isRead(const Propagation &propagation, OpOperand &operand) {
    const Sharding made = propagation.getMadeSharding(operand.get());
    Operation *producer = operand.get().getDefiningOp();
    return isSame(made, propagation.getSharding(operand.get())) &&
           isSame(made, propagation.getNeededSharding(operand)) &&
           propagation.getPartials(producer).empty();
  }

  /// For a partition file, and for the plan that evaluates: how the model's own
  /// tensors are cut. What replicas share follows from `dist.zero`, and what an
  /// optimizer keeps from its parameter.
  void record(func::FuncOp function) {
    NamedAttrList shards;
    SymbolTable symbols(getOperation());
    const Axes axes(function);
    for (BlockArgument argument : function.getArguments())
      if (auto name = function.getArgAttrOfType<StringAttr>(
              argument.getArgNumber(), nn::kNameAttr))
        if (dist::ShardingAttr sharding = getShardingAttr(argument))
          shards.set(name.getValue(), sharding);
    for (auto parameter : function.getOps<nn::ParameterOp>())
      if (auto weight = symbols.lookup<nn::WeightOp>(parameter.getWeight());
          weight && !weight->hasAttr(nn::kRoleAttr))
        if (getShardingAttr(parameter))
          shards.set(weight.getOrigin(), getOwnSharding(parameter, axes));
    function->setAttr(kShardsAttr, shards.getDictionary(&getContext()));
    recordResults(function);
  }

  /// Without the cut along "data".
  static dist::ShardingAttr getOwnSharding(nn::ParameterOp parameter,
                                           const Axes &axes) {
    Sharding sharding = getSharding(parameter);
    for (DimSharding &cut : sharding)
      if (llvm::is_contained(cut.axes, axes.getData()))
        cut = {};
    return getAttr(parameter.getContext(), sharding,
                   nn::getTensorType(parameter).getRank());
  }

  /// For annotations: how the results of the model's nodes are cut.
  void recordResults(func::FuncOp function) {
    auto numbered = dist::Annotations::fromAttr(
        getOperation()->getAttr(dist::kNumberedNodesAttr));
    if (!numbered)
      return;
    NamedAttrList shards;
    const NodeTensors results(function);
    for (const dist::NodeAnnotation &node : numbered->nodes)
      for (const dist::TensorAnnotation &tensor : node.tensors)
        if (tensor.kind == dist::TensorKind::result &&
            tensor.where == node.node)
          if (Value value = results.find(node.node, tensor.shape))
            shards.set(getResultKey(node.node, tensor.name),
                       getAttr(&getContext(), getSharding(value),
                               static_cast<int64_t>(tensor.shape.size())));
    function->setAttr(kResultShardsAttr, shards.getDictionary(&getContext()));
  }
};

} // namespace
} // namespace partita::shard
