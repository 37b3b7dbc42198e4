//===- Activity.cpp - What depends on what is differentiated --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Activity.h"

#include "compiler/autodiff/Ports.h"
#include "dialects/nn/NNDialect.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace partita::autodiff {

static bool isFloat(Value value) {
  return isa<FloatType>(nn::getTensorType(value).getElementType());
}

void spreadActive(Block &block, llvm::DenseMap<Value, Value> &active) {
  for (Operation &op : block)
    for (Value operand : op.getOperands())
      if (active.contains(operand))
        for (Value result : op.getResults())
          if (isFloat(result))
            active.try_emplace(result, operand);
}

llvm::DenseMap<Value, Value> findActive(ModuleOp module, func::FuncOp function,
                                        bool inputs) {
  llvm::DenseMap<Value, Value> active;
  llvm::DenseSet<Attribute> trained;
  for (auto weight : module.getOps<nn::WeightOp>())
    if (weight->hasAttr(kTrainedAttr))
      trained.insert(weight.getSymNameAttr());
  function.walk([&](nn::ParameterOp parameter) {
    if (trained.contains(parameter.getWeightAttr().getAttr()))
      active[parameter.getResult()] = Value();
  });
  if (inputs)
    for (BlockArgument argument : function.getArguments())
      if (isFloat(argument))
        active[argument] = Value();
  spreadActive(function.getBody().front(), active);
  return active;
}

} // namespace partita::autodiff
