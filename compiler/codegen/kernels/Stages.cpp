//===- Stages.cpp - Which values are put in memory ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/NNToLinalg.h"
#include "compiler/codegen/kernels/Reductions.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace partita::codegen {
namespace {

/// A value that is computed from a reduction and then repeated: computing it
/// again for every element would be a waste.
bool isRepeated(Value value, const DenseSet<Value> &fromReduction) {
  if (!fromReduction.contains(value))
    return false;
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return isa<nn::BroadcastOp>(user);
  });
}

} // namespace

SmallVector<Value> chooseStages(Block &body, StageMode mode) {
  DenseSet<Value> stages, fromReduction;
  for (Operation &op : body.without_terminator()) {
    Value result = op.getResult(0);
    bool reduction = describeReduction(&op).has_value();
    if (reduction || llvm::any_of(op.getOperands(), [&](Value operand) {
          return fromReduction.contains(operand);
        }))
      fromReduction.insert(result);
    if (mode == StageMode::nothing)
      continue;
    if (reduction || isRepeated(result, fromReduction))
      stages.insert(result);
  }
  for (Value result : body.getTerminator()->getOperands())
    if (result.getDefiningOp())
      stages.insert(result);

  // Backward: which stages would compute a value again for themselves?
  if (mode == StageMode::fast) {
    DenseMap<Value, SmallVector<Operation *, 2>> readers;
    for (Operation &op : llvm::reverse(body.without_terminator())) {
      Value result = op.getResult(0);
      SmallVector<Operation *, 2> &mine = readers[result];
      if (nn::isTranscendental(&op) && mine.size() > 1)
        stages.insert(result);
      SmallVector<Operation *, 2> through =
          stages.contains(result) ? SmallVector<Operation *, 2>{&op} : mine;
      for (Value operand : op.getOperands())
        for (Operation *reader : through)
          if (!llvm::is_contained(readers[operand], reader))
            readers[operand].push_back(reader);
    }
  }
  SmallVector<Value> ordered;
  for (Operation &op : body.without_terminator())
    if (stages.contains(op.getResult(0)))
      ordered.push_back(op.getResult(0));
  return ordered;
}

} // namespace partita::codegen
