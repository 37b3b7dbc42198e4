//===- Propagation.cpp - Shardings of a whole graph -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/shard/Propagation.h"

#include "compiler/analysis/Rates.h"

using namespace mlir;

namespace partita::shard {

/// Allows only cuts with which each element is computed as on one device.
static void makeReproducible(Operation *op, nn::ShardingRule &rule) {
  const bool isSum = llvm::any_of(rule.factors, [&](const nn::Factor &factor) {
    return isRoundingSum(op, factor);
  });
  if (!isSum)
    return;
  for (nn::Factor &factor : rule.factors)
    // Every device computes all of a sum, in the same order.
    if (isRoundingSum(op, factor))
      factor.least_part = factor.size;
    else if (factor.kind == nn::FactorKind::pass_through)
      // Libraries add up a single column in another order than several.
      factor.least_part = 2;
}

bool isOfState(Value value) {
  if (auto parameter = value.getDefiningOp<nn::ParameterOp>())
    return parameter.getState();
  auto cast = value.getDefiningOp<nn::CastOp>();
  return cast && isOfState(cast.getX()) &&
         nn::getByteSize(cast.getType()) <
             nn::getByteSize(cast.getX().getType());
}

/// Whether an op has the same operands on all replicas, and so may be shared by
/// them.
static bool isOfUpdate(Operation *op, analysis::Rates &rates) {
  return (op->getNumResults() == 1 && isOfState(op->getResult(0))) ||
         (rates.getRate(op) == analysis::Rate::update &&
          !isa<nn::SumMicroBatchesOp>(op));
}

Propagation::Propagation(func::FuncOp function) : axes(function) {
  const bool reproducible = function->hasAttr(dist::kReproducibleAttr);
  if (axes.getData()) {
    analysis::Rates rates;
    rates.moveIntoUpdates(function.getBody().front());
    for (Operation &op : function.getBody().front().without_terminator()) {
      if (isOfUpdate(&op, rates))
        updates.insert(&op);
      // The sums over micro-batches of parts are made in each of them.
      auto sum = dyn_cast<nn::SumMicroBatchesOp>(op);
      if (sum && !isOwnOfReplica(sum))
        for (Operation *part : {sum.getOperation(), sum.getX().getDefiningOp(),
                                sum.getAccumulator().getDefiningOp()})
          updates.insert(part);
    }
  }
  for (Operation &op : function.getBody().front().without_terminator()) {
    auto shardable = dyn_cast<nn::ShardableOpInterface>(op);
    if (!shardable || op.hasAttr(dist::kWholeAttr))
      continue;
    nn::ShardingRule &rule = rules[&op] = shardable.getShardingRule();
    if (reproducible)
      makeReproducible(&op, rule);
  }
}

const nn::ShardingRule *Propagation::getRule(Operation *op) const {
  auto it = rules.find(op);
  return it == rules.end() ? nullptr : &it->second;
}

const Sharding &Propagation::getSharding(Value value) const {
  static const Sharding whole;
  auto it = known.find(value);
  return it == known.end() ? whole : it->second;
}

void Propagation::seed(Value value, const Sharding &sharding) {
  if (!known.count(value) && !isWhole(sharding))
    set(value, sharding);
}

void Propagation::fix(Value value, const Sharding &sharding) {
  if (!known.count(value))
    set(value, sharding);
}

void Propagation::seedWritten(Value value) {
  if (getShardingAttr(value))
    fix(value, shard::getSharding(value));
}

void Propagation::set(Value value, Sharding sharding) {
  known[value] = std::move(sharding);
  changed.push_back(value);
  auto add = [&](Operation *op) {
    if (op && waiting.insert(op).second)
      worklist.push_back(op);
  };
  add(value.getDefiningOp());
  for (Operation *user : value.getUsers())
    add(user);
}

void Propagation::undo() {
  for (Value value : changed)
    known.erase(value);
  changed.clear();
}

FactorShardings Propagation::getFactorShardings(Operation *op) const {
  FactorShardings factors;
  const nn::ShardingRule *rule = getRule(op);
  if (!rule)
    return factors;
  // A sum over micro-batches is cut as what it is added up in: another cut
  // that is wanted is made of the sum, once a step.
  auto sum = dyn_cast<nn::SumMicroBatchesOp>(op);
  if (!sum || !sum.getAccumulator() || !known.count(sum.getAccumulator()))
    for (auto [result, dims] : llvm::zip(op->getResults(), rule->results))
      addSharding(*rule, dims, getAllowed(op, result), axes, factors);
  for (auto [operand, dims] : llvm::zip(op->getOperands(), rule->operands))
    addSharding(*rule, dims, getAllowed(op, operand), axes, factors);
  return factors;
}

/// The sharding of a value along which an op may be cut.
Sharding Propagation::getAllowed(Operation *op, Value value) const {
  Sharding sharding = getSharding(value);
  if (axes.getData() && !updates.contains(op))
    for (DimSharding &cut : sharding)
      if (llvm::is_contained(cut.axes, axes.getData()))
        cut = {};
  return sharding;
}

SmallVector<dist::PartialAttr> Propagation::getPartials(Operation *op) const {
  SmallVector<dist::PartialAttr> partials;
  if (const nn::ShardingRule *rule = getRule(op))
    partials = shard::getPartials(*rule, getFactorShardings(op));
  if (axes.getData() && isOwnOfReplica(op))
    partials.push_back(dist::PartialAttr::get(
        op->getContext(), axes.getData().getValue(), nn::ReduceKind::sum));
  return partials;
}

Sharding Propagation::getMadeSharding(Value value) const {
  Operation *op = value.getDefiningOp();
  const nn::ShardingRule *rule = op ? getRule(op) : nullptr;
  if (!rule)
    return {};
  return projectSharding(*rule,
                         rule->results[cast<OpResult>(value).getResultNumber()],
                         getFactorShardings(op), axes);
}

Sharding Propagation::getNeededSharding(OpOperand &operand) const {
  const nn::ShardingRule *rule = getRule(operand.getOwner());
  if (!rule)
    return {};
  return projectSharding(*rule, rule->operands[operand.getOperandNumber()],
                         getFactorShardings(operand.getOwner()), axes);
}

void Propagation::visit(Operation *op) {
  const nn::ShardingRule *rule = getRule(op);
  if (!rule)
    return;
  const FactorShardings factors = getFactorShardings(op);
  auto spread = [&](Value value, const nn::DimFactors &dims) {
    if (known.count(value))
      return;
    if (Sharding sharding = projectSharding(*rule, dims, factors, axes);
        !isWhole(sharding))
      set(value, std::move(sharding));
  };
  for (auto [result, dims] : llvm::zip(op->getResults(), rule->results))
    spread(result, dims);
  for (auto [operand, dims] : llvm::zip(op->getOperands(), rule->operands))
    spread(operand, dims);
}

SmallVector<NeededAlignment>
Propagation::getNeededAlignments(ArrayRef<Operation *> ops) const {
  SmallVector<NeededAlignment> needed;
  auto add = [&](const nn::ShardingRule &rule, Value value,
                 const nn::DimFactors &dims) {
    for (auto [list, cut] : llvm::zip(dims, getSharding(value)))
      if (int64_t alignment = getNeededAlignment(rule, list, cut, axes))
        needed.push_back({cut.axes, alignment});
  };
  for (Operation *op : ops) {
    const nn::ShardingRule *rule = getRule(op);
    if (!rule)
      continue;
    for (auto [operand, dims] : llvm::zip(op->getOperands(), rule->operands))
      add(*rule, operand, dims);
    for (auto [result, dims] : llvm::zip(op->getResults(), rule->results))
      add(*rule, result, dims);
  }
  return needed;
}

Sharding Propagation::withAlignments(Value value, Sharding sharding,
                                     ArrayRef<NeededAlignment> all) const {
  auto type = cast<RankedTensorType>(value.getType());
  for (auto [size, cut] : llvm::zip(type.getShape(), sharding))
    for (const NeededAlignment &needed : all) {
      // Parts that are aligned anyway stay as they are.
      const int64_t devices = axes.getSize(cut.axes),
                    block = cut.blocks * needed.alignment;
      if (cut.axes == needed.axes && cut.alignment == 1 && size % block == 0 &&
          size / block % devices != 0 && size / block > devices)
        cut.alignment = needed.alignment;
    }
  return sharding;
}

void Propagation::run() {
  while (!worklist.empty()) {
    Operation *op = worklist.front();
    worklist.pop_front();
    waiting.erase(op);
    visit(op);
  }
}

} // namespace partita::shard
