//===- ExpandKernelMath.cpp - Functions without an instruction ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/Passes.h"

#include "compiler/codegen/Codegen.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace partita::codegen {

#define GEN_PASS_DEF_EXPANDKERNELMATHPASS
#include "compiler/codegen/kernels/Passes.h.inc"

namespace {

/// Functions with an approximation good to the last few bits. The others (sine
/// and cosine far from zero, power, ...) call the mathematics library.
bool isApproximated(StringRef name) {
  return llvm::is_contained({"math.exp", "math.tanh", "math.erf", "math.log"},
                            name);
}

/// Conversions between f64 and the narrow floats go by way of f32: processors
/// of these levels have no instruction for them.
template <typename Op> struct SplitConversion : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    Type from = op.getIn().getType(), to = op.getType();
    unsigned bits[] = {getElementTypeOrSelf(from).getIntOrFloatBitWidth(),
                       getElementTypeOrSelf(to).getIntOrFloatBitWidth()};
    if (bits[0] + bits[1] != 64 + 16)
      return failure();
    Type middle = rewriter.getF32Type();
    if (auto vector = dyn_cast<VectorType>(to))
      middle = vector.clone(middle);
    Value half = Op::create(rewriter, op.getLoc(), middle, op.getIn());
    rewriter.replaceOpWithNewOp<Op>(op, to, half);
    return success();
  }
};

/// i16, or vectors of it, for f16 and bf16; null for other types, such as
/// buffers of them.
Type getBits(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  Type element = vector ? vector.getElementType() : type, bits;
  if (element.isF16() || element.isBF16())
    bits = IntegerType::get(type.getContext(), 16);
  return bits && vector ? vector.clone(bits) : bits;
}

/// Chooses between numbers of 16 bits by their bits: for them LLVM has no
/// instruction at these levels, and would convert each to f32 and back with a
/// function of the compiler's own library.
struct SelectBits : OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::SelectOp op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType(), bits = getBits(type);
    if (!bits)
      return failure();
    auto asBits = [&](Value x) {
      return arith::BitcastOp::create(rewriter, op.getLoc(), bits, x);
    };
    Value chosen = arith::SelectOp::create(
        rewriter, op.getLoc(), op.getCondition(), asBits(op.getTrueValue()),
        asBits(op.getFalseValue()));
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, type, chosen);
    return success();
  }
};

/// The same where a branch yields them.
struct BranchBits : OpRewritePattern<scf::IfOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(scf::IfOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getNumResults() != 1 || !getBits(op.getResult(0).getType()))
      return failure();
    Type type = op.getResult(0).getType(), bits = getBits(type);
    auto branch =
        scf::IfOp::create(rewriter, op.getLoc(), bits, op.getCondition(),
                          /*addThenBlock=*/false, /*addElseBlock=*/false);
    for (auto [from, to] :
         {std::pair(&op.getThenRegion(), &branch.getThenRegion()),
          std::pair(&op.getElseRegion(), &branch.getElseRegion())}) {
      rewriter.inlineRegionBefore(*from, *to, to->end());
      Operation *yield = to->front().getTerminator();
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPoint(yield);
      rewriter.replaceOpWithNewOp<scf::YieldOp>(
          yield, arith::BitcastOp::create(rewriter, yield->getLoc(), bits,
                                          yield->getOperand(0))
                     .getResult());
    }
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, type,
                                                  branch.getResult(0));
    return success();
  }
};

class ExpandKernelMathPass
    : public impl::ExpandKernelMathPassBase<ExpandKernelMathPass> {
public:
  using ExpandKernelMathPassBase::ExpandKernelMathPassBase;

private:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    RewritePatternSet patterns(module.getContext());
    patterns.add<SplitConversion<arith::ExtFOp>,
                 SplitConversion<arith::TruncFOp>, SelectBits, BranchBits>(
        module.getContext());
    populateMathF32ExpansionPatterns(patterns, [](StringRef) { return true; });
    if (!module->hasAttr(kReferenceAttr))
      populateMathPolynomialApproximationPatterns(patterns, isApproximated);
    if (failed(applyPatternsGreedily(module, std::move(patterns)))) {
      module.emitError("mathematical functions could not be expanded");
      signalPassFailure();
    }
  }
};

} // namespace
} // namespace partita::codegen
