//===- NodeTensors.cpp - The values that nodes make -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/shard/NodeTensors.h"

#include "compiler/model/ModelFunction.h"
#include "compiler/model/NodeNames.h"

using namespace mlir;

namespace partita::shard {

/// The node that an op finishes: the last of those it computes.
static StringRef getLastNode(Operation *op) {
  SmallVector<StringRef, 2> names = getNodeNames(op->getLoc());
  return names.empty() ? StringRef() : names.back();
}

NodeTensors::NodeTensors(func::FuncOp function) {
  for (Operation *op : getActiveOps(function.getBody().front())) {
    StringRef node = getLastNode(op);
    // A node's tensor is what its last op makes.
    if (node.empty() || llvm::any_of(op->getUsers(), [&](Operation *user) {
          return getLastNode(user) == node;
        }))
      continue;
    const Value value =
        op->getNumResults() == 1 ? Value(op->getResult(0)) : Value();
    if (auto [it, isNew] = values.try_emplace(node, value); !isNew)
      it->second = {};
  }
}

Value NodeTensors::find(StringRef node, ArrayRef<int64_t> shape) const {
  const Value value = values.lookup(node);
  if (!value || cast<RankedTensorType>(value.getType()).getShape() != shape)
    return {};
  // An image that is as long in all dimensions does not show its order.
  const bool hidesOrder =
      shape.size() > 2 && shape[1] > 1 && llvm::all_equal(shape.drop_front());
  return hidesOrder ? Value() : value;
}

} // namespace partita::shard
