//===- StepSums.cpp - A loss and gradients of a step ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/train/StepSums.h"

#include "compiler/autodiff/Ports.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/nn/NodeScopes.h"
#include "dialects/nn/grad/GradientAttr.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace partita::nn::grad;

namespace partita::train {

//===----------------------------------------------------------------------===//
// What each node adds to a gradient
//===----------------------------------------------------------------------===//

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

/// The terms of a gradient that is a sum, those of each node added up; or the
/// gradient as it is, if all of them are of one node. What is rearranged in the
/// same way after each term, as the transpose of a table that several read, is
/// moved to the terms. What is read elsewhere, too (not `isAlone`), is one
/// term: its own terms could be more than anyone can count.
SmallVector<Part> partByNode(ImplicitLocOpBuilder &b, Value value,
                             bool isAlone = true) {
  Operation *op = isAlone ? value.getDefiningOp() : nullptr;
  if (isa_and_nonnull<nn::AddOp>(op)) {
    SmallVector<Part> one = partByNode(b, op->getOperand(0),
                                       op->getOperand(0).hasOneUse()),
                      other = partByNode(b, op->getOperand(1),
                                         op->getOperand(1).hasOneUse());
    if (one.size() > 1 || other.size() > 1 ||
        one.front().node != other.front().node)
      return joinParts(b, std::move(one), other);
    return {{value, one.front().node}};
  }
  if (!isa_and_nonnull<nn::TransposeOp, nn::ReshapeOp>(op))
    return {{value, getNode(value)}};
  SmallVector<Part> parts =
      partByNode(b, op->getOperand(0), op->getOperand(0).hasOneUse());
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

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

StringRef StepSums::nameOf(unsigned result) {
  auto name = function.getResultAttrOfType<StringAttr>(result, nn::kNameAttr);
  return name ? name.getValue() : StringRef();
}

LogicalResult StepSums::findCount() {
  if (function.getNumResults() == 0 || !nameOf(0).starts_with("loss"))
    return emitError(UnknownLoc::get(function.getContext()))
           << "the model's first result is no loss: run --nn-add-loss and "
              "--nn-differentiate before";
  if (function.getNumResults() < 2 ||
      !function.getResultAttr(1, autodiff::kCountAttr))
    return success();
  Value value = function.getBody().front().getTerminator()->getOperand(1);
  // The compiler may know it.
  DenseElementsAttr known;
  if (matchPattern(value, m_Constant(&known)))
    count =
        Term(b, value).splat(known.getSplatValue<APFloat>().convertToDouble() *
                             static_cast<double>(microBatches));
  else
    count = sumUp(value);
  return success();
}

std::vector<std::pair<std::string, Value>> StepSums::getGradients() {
  std::vector<std::pair<std::string, Value>> gradients;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (StringRef name = nameOf(i); name.consume_back(".grad"))
      gradients.push_back(
          {name.str(),
           function.getBody().front().getTerminator()->getOperand(i)});
  return gradients;
}

Term StepSums::sumUp(Value value) {
  return {b, nn::SumMicroBatchesOp::create(b, value.getType(), value,
                                           /*accumulator=*/Value(),
                                           /*lane=*/IntegerAttr())};
}

Term StepSums::meanOf(Term sum) {
  if (!count.get())
    return sum;
  return sum / count.cast(sum.element()).broadcast({}, sum.shape());
}

Term StepSums::ofStep(Value value) { return meanOf(sumUp(value)); }

Term StepSums::ofStep(Value gradient, FlatSymbolRefAttr parameter) {
  Term total;
  for (const Part &part : partByNode(b, gradient)) {
    // A sum belongs to the node that makes what is summed.
    b.setLoc(part.value.getLoc());
    Term sum = sumUp(part.value);
    if (parameter)
      sum.get().getDefiningOp()->setAttr(nn::kGradientAttr, parameter);
    total = total.get() ? total + sum : sum;
  }
  return meanOf(total);
}

void StepSums::markStep(unsigned results) {
  for (unsigned i = 0; i < results; ++i)
    function.setResultAttr(i, nn::kPerStepAttr, b.getUnitAttr());
  function->setAttr(dist::kMicroBatchesAttr, b.getI64IntegerAttr(microBatches));
  // Unless somebody says another.
  function->setAttr(dist::kScheduleAttr, b.getStringAttr("1f1b"));
  auto module = function->getParentOfType<ModuleOp>();
  module->setAttr(dist::kFullStepsAttr, b.getUnitAttr());
  module->setAttr(dist::kFullMicroBatchesAttr, b.getUnitAttr());
}

} // namespace partita::train
