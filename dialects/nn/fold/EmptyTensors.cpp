//===- EmptyTensors.cpp - Tensors that have a dimension of 0 --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/fold/EmptyTensors.h"

#include "dialects/nn/fold/ConstantElements.h"

#include "mlir/Interfaces/FoldInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace partita::nn {

bool hasNoElements(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() && tensor.getNumElements() == 0;
}

DenseElementsAttr getNeutralTensor(ReduceKind kind, RankedTensorType type) {
  Type element = type.getElementType();
  return DenseElementsAttr::get(
      type, fromScalar(getNeutralElement(kind, element), element));
}

namespace {

/// The result, which has elements, of an op that reads a tensor without.
OpFoldResult foldWithoutOperand(Operation *op) {
  return llvm::TypeSwitch<Operation *, OpFoldResult>(op)
      // A sum of no products; attention to nothing is a sum of no values.
      .Case<AttentionOp, ExpertOuterOp>([](auto product) {
        return getNeutralTensor(ReduceKind::sum, product.getType());
      })
      // Every window of a WindowArgMaxOp has elements.
      .Case([](ReductionOpInterface reduction) {
        return getNeutralTensor(reduction.getReduceKind(),
                                getTensorType(reduction->getResult(0)));
      })
      .Case([](ScatterOp scatter) { return scatter.getX(); })
      .Case([](ConcatOp concat) {
        concat.getOperandsMutable().assign(
            llvm::filter_to_vector(concat.getOperands(), [](Value operand) {
              return !hasNoElements(operand.getType());
            }));
        return concat.getResult();
      })
      .Default([](Operation *) { return OpFoldResult(); });
}

struct EmptyTensorFolds : DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;

  LogicalResult fold(Operation *op, ArrayRef<Attribute>,
                     SmallVectorImpl<OpFoldResult> &results) const override {
    if (op->getNumResults() == 0 || op->getNumRegions() != 0 || !isPure(op))
      return failure();
    if (llvm::all_of(op->getResultTypes(), hasNoElements)) {
      for (Type type : op->getResultTypes())
        results.push_back(DenseElementsAttr::get(cast<RankedTensorType>(type),
                                                 ArrayRef<Attribute>()));
      return success();
    }
    if (llvm::none_of(op->getOperandTypes(), hasNoElements))
      return failure();
    OpFoldResult result = foldWithoutOperand(op);
    if (!result)
      return failure();
    // The op itself: it was changed in place.
    if (result != OpFoldResult(op->getResult(0)))
      results.push_back(result);
    return success();
  }
};

} // namespace

std::unique_ptr<DialectInterface> createEmptyTensorFolds(Dialect *dialect) {
  return std::make_unique<EmptyTensorFolds>(dialect);
}

} // namespace partita::nn
