//===- NNPointwise.cpp - Ops on corresponding elements --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"
#include "dialects/nn/fold/ConstantElements.h"
#include "dialects/nn/fold/ScalarEmit.h"
#include "dialects/nn/grad/Term.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"

#include <cmath>
#include <optional>

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/nn/NNOps.cpp.inc"

namespace partita::nn {

/// x ** c for the few c that have something cheaper than a power.
static LogicalResult simplifyPow(PowOp op, PatternRewriter &rewriter) {
  std::optional<double> exponent = getFloatSplat(op.getRhs());
  if (!exponent)
    return failure();
  Value x = op.getLhs();
  if (*exponent == 2.0)
    rewriter.replaceOpWithNewOp<MulOp>(op, x, x);
  else if (*exponent == 3.0)
    rewriter.replaceOpWithNewOp<MulOp>(
        op, MulOp::create(rewriter, op.getLoc(), x, x), x);
  else if (*exponent == 0.5)
    rewriter.replaceOpWithNewOp<SqrtOp>(op, x);
  else if (*exponent == -0.5)
    rewriter.replaceOpWithNewOp<RsqrtOp>(op, x);
  else if (*exponent == -1.0)
    rewriter.replaceOpWithNewOp<ReciprocalOp>(op, x);
  else
    return failure();
  return success();
}

void PowOp::getCanonicalizationPatterns(RewritePatternSet &results,
                                        MLIRContext *) {
  results.add(simplifyPow);
}

/// x / c = x * (1 / c) where c is a power of two: then both are exact.
static LogicalResult divideByPowerOfTwo(DivOp op, PatternRewriter &rewriter) {
  std::optional<double> divisor = getFloatSplat(op.getRhs());
  if (!divisor)
    return failure();
  int exponent;
  if (std::abs(std::frexp(*divisor, &exponent)) != 0.5)
    return failure();
  // Far from the limits of f16, so that the inverse is a normal number.
  if (exponent < -12 || exponent > 12)
    return failure();
  Value factor = ConstantOp::create(rewriter, op.getLoc(),
                                    makeSplat(op.getType(), 1.0 / *divisor));
  rewriter.replaceOpWithNewOp<MulOp>(op, op.getLhs(), factor);
  return success();
}

void DivOp::getCanonicalizationPatterns(RewritePatternSet &results,
                                        MLIRContext *) {
  results.add(divideByPowerOfTwo);
}

LogicalResult BitcastOp::verify() {
  Type from = getX().getType().getElementType();
  Type to = getType().getElementType();
  if (getSignlessType(from).getIntOrFloatBitWidth() !=
      getSignlessType(to).getIntOrFloatBitWidth()) // C1
    return emitOpError("needs element types of one width, not ")
           << from << " and " << to;
  return success();
}

} // namespace partita::nn
