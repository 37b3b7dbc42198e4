//===- DotOperand.h - An operand of a product -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SIMPLIFY_DOTOPERAND_H
#define PARTITA_COMPILER_SIMPLIFY_DOTOPERAND_H

#include "dialects/nn/grad/Term.h"

namespace partita::simplify {

/// What a product does with the dimensions of an operand.
struct DotOperand {
  mlir::Value value;
  nn::grad::Shape batch, contract, free;

  DotOperand(nn::DotOp op, bool isRight)
      : value(op->getOperand(isRight)),
        batch(isRight ? op.getRhsBatch() : op.getLhsBatch()),
        contract(isRight ? op.getRhsContract() : op.getLhsContract()),
        free(nn::getFreeDims(nn::getTensorType(value).getRank(), batch,
                             contract)) {}

  /// Reads what a transpose reads, if the result stays as it is.
  void skipTranspose() {
    auto transpose = value.getDefiningOp<nn::TransposeOp>();
    if (!transpose)
      return;
    auto inner = [&](llvm::ArrayRef<int64_t> dims) {
      return nn::grad::Shape(llvm::map_range(
          dims, [&](int64_t dim) { return transpose.getPermutation()[dim]; }));
    };
    if (!llvm::is_sorted(inner(free)))
      return;
    value = transpose.getX();
    for (nn::grad::Shape *dims : {&batch, &contract, &free})
      *dims = inner(*dims);
  }
};

} // namespace partita::simplify

#endif // PARTITA_COMPILER_SIMPLIFY_DOTOPERAND_H
