//===- Adjoints.cpp - Reverse mode over the ops of a block ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Adjoints.h"

#include "dialects/nn/grad/AdjointLoc.h"
#include "dialects/nn/grad/Term.h"
#include "dialects/support/Try.h"

using namespace mlir;

namespace partita::autodiff {

static bool narrowsBack(nn::CastOp cast) {
  auto bitsOf = [](Value value) {
    return nn::getTensorType(value).getElementType().getIntOrFloatBitWidth();
  };
  return bitsOf(cast.getX()) < bitsOf(cast.getResult());
}

/// Notes whose cotangent it is, if it is that of a node's result.
void Adjoints::mark(Value cotangent, Operation *op) {
  Operation *maker = cotangent.getDefiningOp();
  const StringAttr node = nn::getLastNode(op->getLoc()).name;
  // A cotangent may be a value of the model itself, such as a factor.
  if (!maker || !node || !nn::getLastNode(maker->getLoc()).cotangents)
    return;
  for (Operation *user : op->getUsers())
    if (const nn::LastNode other = nn::getLastNode(user->getLoc());
        other.name == node && !other.cotangents)
      return; // the node goes on
  maker->setLoc(nn::addCotangent(maker->getLoc(), node));
}

LogicalResult Adjoints::differentiate(Operation *op) {
  // What is differentiated itself is computed from nothing that is.
  if (op->getNumResults() != 1 || !active.lookup(op->getResult(0)))
    return success();
  // The derivative belongs to the node, and so to its block.
  b.setLoc(marks ? nn::makeAdjointLoc(op->getLoc()) : op->getLoc());
  Cotangent cotangent = cotangents.take(op->getResult(0));
  if (!cotangent.value)
    return success();
  if (marks)
    mark(cotangent.value, op);
  if (auto joins = dyn_cast<dist::DifferentiableOpInterface>(op))
    return differentiate(joins, cotangent);
  // Shares that are rounded would be added up with less precision.
  if (auto cast = dyn_cast<nn::CastOp>(op);
      cast && cotangent.isShare && narrowsBack(cast))
    cotangent = cotangents.makeWhole(cotangent, "the cotangent of '" +
                                                    nn::getNodeName(op) + "'");
  // What a replica computes of its own gives a share to what all have.
  auto give = [&](Value operand, Value part) -> Cotangent {
    return {part,
            !isOwn(operand) && (cotangent.isShare || isOwn(op->getResult(0)))};
  };
  if (auto slice = dyn_cast<nn::SliceOp>(op);
      slice && cotangents.addSlice(slice, give(slice.getX(), cotangent.value)))
    return success();
  auto differentiable =
      PARTITA_TRY(dyn_cast<nn::DifferentiableOpInterface>(op));
  auto parts = PARTITA_TRY(differentiable.buildVjp({b, cotangent.value}));
  for (auto [operand, part] : llvm::zip_equal(op->getOperands(), parts))
    if (part && active.contains(operand))
      cotangents.add(operand, give(operand, part));
  return success();
}

LogicalResult Adjoints::differentiate(dist::DifferentiableOpInterface op,
                                      Cotangent cotangent) {
  Value operand = op->getOperand(0);
  if (!own || (op.givesWhole() && isOwn(operand)))
    return failure();
  Value part =
      PARTITA_TRY(op.buildVjp({b, cotangent.value}, cotangent.isShare));
  cotangents.add(operand, {part, !isOwn(operand) && !op.givesWhole()});
  return success();
}

Operation *Adjoints::run(Operation *end) {
  // Derivatives stand before `end`, too, and are none of these.
  Operation *next;
  for (Operation *op = end->getPrevNode(); op; op = next) {
    next = op->getPrevNode();
    if (failed(differentiate(op)))
      return op;
  }
  return nullptr;
}

Adjoints::Path Adjoints::getPath(Operation *op) const {
  Path path{op->getResult(0), ""};
  SmallVector<std::string> nodes;
  while (Value from = active.lookup(path.from)) {
    std::string name = nn::getNodeName(path.from.getDefiningOp());
    if (nodes.empty() || nodes.back() != name)
      nodes.push_back(name);
    path.from = from;
  }
  constexpr size_t kMostNodes = 6;
  for (size_t i = nodes.size(); i-- > 0;) {
    if (nodes.size() > kMostNodes && i + 3 < nodes.size() && i >= 3) {
      path.nodes += i == 3 ? "... -> " : "";
      continue;
    }
    path.nodes += nodes[i] + " -> ";
  }
  return path;
}

} // namespace partita::autodiff
