//===- StepSums.cpp - A loss and gradients of a step ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/train/StepSums.h"

#include "compiler/autodiff/Ports.h"
#include "compiler/train/GradientParts.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/nn/grad/GradientAttr.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace partita::nn::grad;

namespace partita::train {

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
  for (Value part : partByNode(b, gradient)) {
    // A sum belongs to the node that makes what is summed.
    b.setLoc(part.getLoc());
    Term sum = sumUp(part);
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
