//===- Rates.cpp - How often a value is computed --------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Rates.h"

#include "dialects/nn/NNDialect.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace partita::analysis {
namespace {

/// What a value's rate follows from: a rate of its own, and other values.
struct Origin {
  Rate rate = Rate::load;
  SmallVector<Value> values;
};

Origin getOrigin(BlockArgument argument) {
  Block *block = argument.getOwner();
  Operation *parent = block->getParentOp();
  if (auto function = dyn_cast_or_null<FunctionOpInterface>(parent))
    return {
        block->isEntryBlock() &&
                function.getArgAttr(argument.getArgNumber(), nn::kPerStepAttr)
            ? Rate::step
            : Rate::micro_batch,
        {}};
  if (!parent || !block->isEntryBlock() ||
      parent->getNumOperands() != block->getNumArguments())
    return {Rate::micro_batch, {}};
  return {Rate::load, {parent->getOperand(argument.getArgNumber())}};
}

Origin getOrigin(OpResult result) {
  Operation *op = result.getOwner();
  if (auto parameter = dyn_cast<nn::ParameterOp>(op))
    return {parameter->hasAttr(nn::kCarriedAttr) ? Rate::micro_batch
            : parameter.getState()               ? Rate::step
                                                 : Rate::load,
            {}};
  if (isa<nn::AccumulatorOp>(op))
    return {Rate::step, {}};
  if (isa<nn::SumMicroBatchesOp>(op))
    return {Rate::update, {}};
  if (op->getNumRegions() == 1 && llvm::hasSingleElement(op->getRegion(0))) {
    Block &body = op->getRegion(0).front();
    if (body.mightHaveTerminator() &&
        body.getTerminator()->getNumOperands() == op->getNumResults())
      return {Rate::load,
              {body.getTerminator()->getOperand(result.getResultNumber())}};
  }
  if (op->getNumRegions() != 0)
    return {Rate::micro_batch, {}};
  // What devices do together they do in each micro-batch, or with the update.
  if (!isMemoryEffectFree(op) || op->hasTrait<nn::EveryMicroBatch>())
    return {Rate::micro_batch, SmallVector<Value>(op->getOperands())};
  return {Rate::load, SmallVector<Value>(op->getOperands())};
}

Origin getOrigin(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return getOrigin(argument);
  return getOrigin(cast<OpResult>(value));
}

} // namespace

StringRef stringifyRate(Rate rate) {
  switch (rate) {
  case Rate::load:
    return "load";
  case Rate::step:
    return "step";
  case Rate::micro_batch:
    return "micro-batch";
  case Rate::update:
    return "update";
  }
  llvm_unreachable("every rate is listed");
}

/// Iterative, since models are deeper than the stack: a value is looked at
/// again after those it follows from.
Rate Rates::getRate(Value root) {
  SmallVector<Value> stack = {root};
  while (!stack.empty()) {
    Value value = stack.back();
    if (known.contains(value)) {
      stack.pop_back();
      continue;
    }
    Origin origin = getOrigin(value);
    Rate rate = origin.rate;
    Value unknown;
    for (Value other : origin.values) {
      auto found = known.find(other);
      if (found != known.end())
        rate = std::max(rate, found->second);
      else if (auto argument = dyn_cast<BlockArgument>(other);
               argument && getOrigin(argument).values.empty())
        rate = std::max(rate, getOrigin(argument).rate);
      else
        unknown = other;
    }
    // The largest rate needs no further look.
    if (unknown && rate != Rate::update) {
      stack.push_back(unknown);
      continue;
    }
    known[value] = rate;
    stack.pop_back();
  }
  return known.lookup(root);
}

Rate Rates::getRate(Operation *op) {
  Rate rate = Rate::load;
  if (op->getNumResults() == 0)
    for (Value operand : op->getOperands())
      rate = std::max(rate, getRate(operand));
  for (Value result : op->getResults())
    rate = std::max(rate, getRate(result));
  return rate;
}

void Rates::moveIntoUpdates(Block &block) {
  for (Operation &op : llvm::reverse(block)) {
    if (isa<nn::ParameterOp, nn::AccumulatorOp>(op) || op.use_empty() ||
        getRate(&op) != Rate::step)
      continue;
    if (llvm::all_of(op.getUsers(), [&](Operation *user) {
          return user->getNumResults() != 0 && getRate(user) == Rate::update;
        }))
      for (Value result : op.getResults())
        known[result] = Rate::update;
  }
}

/// Ends at the first value that is not known: rewrites ask this of each op of a
/// deep model.
bool isKnownAtLoad(Value value) {
  SmallVector<Value> left = {value};
  llvm::DenseSet<Value> seen;
  while (!left.empty()) {
    const Value next = left.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    const Origin origin = getOrigin(next);
    if (origin.rate != Rate::load)
      return false;
    llvm::append_range(left, origin.values);
  }
  return true;
}

} // namespace partita::analysis
