//===- ContractStates.cpp - Products of states as they lie ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/simplify/Passes.h"

using namespace mlir;

namespace partita::simplify {

#define GEN_PASS_DEF_CONTRACTSTATESPASS
#include "compiler/simplify/Passes.h.inc"

namespace {

/// The state that a transpose turns, or null.
nn::TransposeOp getTurnedState(Value operand) {
  auto transpose = operand.getDefiningOp<nn::TransposeOp>();
  if (!transpose)
    return {};
  auto parameter = transpose.getX().getDefiningOp<nn::ParameterOp>();
  return parameter && parameter.getState() ? transpose : nn::TransposeOp();
}

/// The dimensions of the state for those of its transpose.
SmallVector<int64_t> ofState(nn::TransposeOp transpose,
                             ArrayRef<int64_t> dims) {
  return llvm::map_to_vector(
      dims, [&](int64_t dim) { return transpose.getPermutation()[dim]; });
}

/// Whether dimensions follow one another, so that they lie like one.
bool areNeighbours(ArrayRef<int64_t> dims) {
  for (size_t i = 1; i < dims.size(); ++i)
    if (dims[i] != dims[i - 1] + 1)
      return false;
  return true;
}

/// Whether the state is a matrix for a library, or one for each batch, with the
/// dimensions that a product keeps in their order.
bool isMatrix(nn::TransposeOp transpose, ArrayRef<int64_t> batch,
              ArrayRef<int64_t> contract) {
  SmallVector<int64_t> kept;
  for (int64_t dim = 0; dim < transpose.getType().getRank(); ++dim)
    if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
      kept.push_back(transpose.getPermutation()[dim]);
  return areNeighbours(kept) && areNeighbours(ofState(transpose, batch)) &&
         areNeighbours(ofState(transpose, contract));
}

struct ContractStatesPass : impl::ContractStatesPassBase<ContractStatesPass> {
  using ContractStatesPassBase::ContractStatesPassBase;

  void runOnOperation() override {
    getOperation().walk([](nn::DotOp dot) {
      if (nn::TransposeOp lhs = getTurnedState(dot.getLhs());
          lhs && isMatrix(lhs, dot.getLhsBatch(), dot.getLhsContract())) {
        dot.getLhsMutable().assign(lhs.getX());
        dot.setLhsBatch(ofState(lhs, dot.getLhsBatch()));
        dot.setLhsContract(ofState(lhs, dot.getLhsContract()));
      }
      if (nn::TransposeOp rhs = getTurnedState(dot.getRhs());
          rhs && isMatrix(rhs, dot.getRhsBatch(), dot.getRhsContract())) {
        dot.getRhsMutable().assign(rhs.getX());
        dot.setRhsBatch(ofState(rhs, dot.getRhsBatch()));
        dot.setRhsContract(ofState(rhs, dot.getRhsContract()));
      }
    });
  }
};

} // namespace
} // namespace partita::simplify
