//===- GradientParts.cpp - What each node adds to a gradient --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/train/GradientParts.h"

#include "dialects/nn/NNDialect.h"
#include "dialects/nn/NodeScopes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace partita::train {
namespace {

/// A term, and the node that it belongs to; empty: to none that has a name.
struct Part {
  Value value;
  StringRef node;
};

StringRef getNode(Value value) {
  const auto names = nn::getNodeNames(value.getLoc());
  return names.empty() ? StringRef() : names.front();
}

/// Terms of the same node are added up, in their order.
SmallVector<Part> joinParts(ImplicitLocOpBuilder &b, SmallVector<Part> parts,
                            ArrayRef<Part> others) {
  for (const Part &other : others) {
    auto same = llvm::find_if(
        parts, [&](const Part &part) { return part.node == other.node; });
    if (same == parts.end()) {
      parts.push_back(other);
      continue;
    }
    b.setLoc(other.value.getLoc());
    same->value =
        nn::AddOp::create(b, other.value.getType(), same->value, other.value);
  }
  return parts;
}

/// The terms of a value that nothing else reads (`isAlone`). What is read twice
/// is one term: its own terms could be more than anyone can count.
SmallVector<Part> collect(ImplicitLocOpBuilder &b, Value value, bool isAlone) {
  Operation *op = isAlone ? value.getDefiningOp() : nullptr;
  if (isa_and_nonnull<nn::AddOp>(op)) {
    SmallVector<Part> one = collect(b, op->getOperand(0),
                                    op->getOperand(0).hasOneUse()),
                      other = collect(b, op->getOperand(1),
                                      op->getOperand(1).hasOneUse());
    if (one.size() > 1 || other.size() > 1 ||
        one.front().node != other.front().node)
      return joinParts(b, std::move(one), other);
    return {{value, one.front().node}};
  }
  if (!isa_and_nonnull<nn::TransposeOp, nn::ReshapeOp>(op))
    return {{value, getNode(value)}};
  SmallVector<Part> parts =
      collect(b, op->getOperand(0), op->getOperand(0).hasOneUse());
  if (parts.size() == 1)
    return {{value, parts.front().node}};
  for (Part &part : parts) {
    IRMapping mapping;
    mapping.map(op->getOperand(0), part.value);
    Operation *moved = b.clone(*op, mapping);
    moved->setLoc(part.value.getLoc());
    part.value = moved->getResult(0);
  }
  return parts;
}

} // namespace

SmallVector<Value> partByNode(ImplicitLocOpBuilder &b, Value gradient) {
  SmallVector<Value> values;
  for (const Part &part : collect(b, gradient, /*isAlone=*/true))
    values.push_back(part.value);
  return values;
}

} // namespace partita::train
