//===- Propagation.cpp - Shardings of a whole graph -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/shard/Propagation.h"

using namespace mlir;

namespace partita::shard {

Propagation::Propagation(func::FuncOp function) : axes(function) {
  for (Operation &op : function.getBody().front().without_terminator())
    if (auto shardable = dyn_cast<nn::ShardableOpInterface>(op))
      rules[&op] = shardable.getShardingRule();
}

const nn::ShardingRule *Propagation::getRule(Operation *op) const {
  auto it = rules.find(op);
  return it == rules.end() ? nullptr : &it->second;
}

const Cuts &Propagation::getCuts(Value value) const {
  static const Cuts whole;
  auto it = known.find(value);
  return it == known.end() ? whole : it->second;
}

void Propagation::seed(Value value, const Cuts &cuts) {
  if (!known.count(value) && !isWhole(cuts))
    set(value, cuts);
}

void Propagation::seedWritten(Value value) {
  if (getSharding(value) && !known.count(value))
    set(value, shard::getCuts(value));
}

void Propagation::set(Value value, Cuts cuts) {
  known[value] = std::move(cuts);
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

FactorCuts Propagation::getFactorCuts(Operation *op) const {
  FactorCuts factors;
  const nn::ShardingRule *rule = getRule(op);
  if (!rule)
    return factors;
  for (auto [result, dims] : llvm::zip(op->getResults(), rule->results))
    addCuts(*rule, dims, getCuts(result), axes, factors);
  for (auto [operand, dims] : llvm::zip(op->getOperands(), rule->operands))
    addCuts(*rule, dims, getCuts(operand), axes, factors);
  return factors;
}

void Propagation::visit(Operation *op) {
  const nn::ShardingRule *rule = getRule(op);
  if (!rule)
    return;
  const FactorCuts factors = getFactorCuts(op);
  auto spread = [&](Value value, const nn::DimFactors &dims) {
    if (known.count(value))
      return;
    if (Cuts cuts = projectCuts(*rule, dims, factors); !isWhole(cuts))
      set(value, std::move(cuts));
  };
  for (auto [result, dims] : llvm::zip(op->getResults(), rule->results))
    spread(result, dims);
  for (auto [operand, dims] : llvm::zip(op->getOperands(), rule->operands))
    spread(operand, dims);
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
