//===- BlockOrder.cpp - Ops behind what they read -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/BlockOrder.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace partita::analysis {

void putBehindOperands(Block &block) {
  llvm::DenseSet<Operation *> placed;
  // An op is on the stack until all that it reads is placed. Chains of ops are
  // long: the stack is not the machine's.
  SmallVector<Operation *> stack;
  for (Operation &next : llvm::make_early_inc_range(block)) {
    stack.push_back(&next);
    while (!stack.empty()) {
      Operation *op = stack.back();
      const size_t size = stack.size();
      if (!placed.contains(op))
        op->walk([&](Operation *nested) {
          for (Value operand : nested->getOperands())
            if (Operation *producer = operand.getDefiningOp();
                producer && producer->getBlock() == &block &&
                !placed.contains(producer))
              stack.push_back(producer);
        });
      if (stack.size() > size)
        continue;
      stack.pop_back();
      if (placed.insert(op).second && op != &next)
        op->moveBefore(&next);
    }
  }
}

} // namespace partita::analysis
