//===- RaiseExperts.cpp - Find products with gathered matrices ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/simplify/DotOperand.h"
#include "compiler/simplify/Passes.h"
#include "dialects/nn/fold/EmptyTensors.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using partita::nn::grad::Shape;
using partita::nn::grad::Term;

namespace partita::simplify {

#define GEN_PASS_DEF_RAISEEXPERTSPASS
#include "compiler/simplify/Passes.h.inc"

namespace {

/// Whether the batch dimensions are the first ones, in order, and one dimension
/// is summed over.
bool isRowwise(const DotOperand &side) {
  return isIdentityPermutation(side.batch) && side.contract.size() == 1;
}

/// Replaces a product whose side `of` are matrices that were gathered, one for
/// each row of the side `x`.
bool raise(nn::DotOp dot, const DotOperand &of, const DotOperand &x) {
  auto gather = of.value.getDefiningOp<nn::GatherOp>();
  if (!gather || gather.getDim() != 0 || !isRowwise(of) || !isRowwise(x))
    return false;
  RankedTensorType matrices = gather.getX().getType(),
                   rows = nn::getTensorType(x.value);
  const auto batch = static_cast<int64_t>(of.batch.size());
  // Besides the rows, x has what is summed over, and perhaps a dimension of 1.
  const bool isOneRow = rows.getRank() == batch + 1 ||
                        (rows.getRank() == batch + 2 &&
                         rows.getDimSize(2 * batch + 1 - x.contract[0]) == 1);
  if (matrices.getRank() != 3 || batch < 1 ||
      gather.getIndices().getType().getRank() != batch || !isOneRow ||
      !isa<FloatType>(matrices.getElementType()) ||
      dot.getType().getElementType() != matrices.getElementType() ||
      nn::hasNoElements(matrices) || nn::hasNoElements(dot.getType()))
    return false;
  ImplicitLocOpBuilder b(dot.getLoc(), dot);
  const Term weights(b, gather.getX());
  const Term turned =
      of.contract[0] == batch + 1 ? weights : weights.transpose({0, 2, 1});
  Shape shape(rows.getShape().take_front(batch));
  shape.push_back(turned.shape()[2]);
  const Term row = Term(b, x.value).reshape(shape);
  shape.back() = turned.shape()[1];
  const Term experts =
      readIndices(Term(b, gather.getIndices()), matrices.getDimSize(0));
  const Term result = row.make<nn::ExpertDotOp>(rows.clone(shape), row.get(),
                                                turned.get(), experts.get());
  dot.replaceAllUsesWith(result.reshape(dot.getType().getShape()).get());
  dot.erase();
  return true;
}

struct RaiseExpertsPass : impl::RaiseExpertsPassBase<RaiseExpertsPass> {
  void runOnOperation() override {
    getOperation().walk([](nn::DotOp dot) {
      const DotOperand lhs(dot, /*isRight=*/false), rhs(dot, /*isRight=*/true);
      if (!raise(dot, lhs, rhs))
        raise(dot, rhs, lhs);
    });
  }
};

} // namespace
} // namespace partita::simplify
