//===- WeightsOnly.cpp - Values that depend on weights only -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/simplify/WeightsOnly.h"
#include "dialects/nn/NNDialect.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace partita::simplify {

/// Iterative, since models are deeper than the stack: an op is looked at again
/// after its operands.
bool WeightsOnly::operator()(Value value) {
  Operation *root = value.getDefiningOp();
  if (!root)
    return false;
  SmallVector<Operation *> stack = {root};
  while (!stack.empty()) {
    Operation *op = stack.back();
    if (known.contains(op)) {
      stack.pop_back();
      continue;
    }
    bool result = isa<nn::NNDialect>(op->getDialect());
    Operation *unknown = nullptr;
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (!producer)
        result = false;
      else if (auto found = known.find(producer); found != known.end())
        result &= found->second;
      else
        unknown = producer;
    }
    if (result && unknown) {
      stack.push_back(unknown);
      continue;
    }
    known[op] = result;
    stack.pop_back();
  }
  return known.lookup(root);
}

std::optional<double> getFloatSplat(Value value) {
  DenseElementsAttr attr;
  if (!matchPattern(value, m_Constant(&attr)) || !attr.isSplat() ||
      !isa<FloatType>(attr.getElementType()))
    return std::nullopt;
  return attr.getSplatValue<FloatAttr>().getValueAsDouble();
}

} // namespace partita::simplify
