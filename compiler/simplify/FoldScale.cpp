//===- FoldScale.cpp - Scale weights instead of results -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Rates.h"
#include "compiler/simplify/Passes.h"
#include "dialects/nn/fold/ConstantElements.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using partita::analysis::isKnownAtLoad;

namespace partita::simplify {

#define GEN_PASS_DEF_FOLDSCALEPASS
#include "compiler/simplify/Passes.h.inc"

namespace {

/// A factor before it is repeated to the shape of a result: its dimension i
/// lies along dimension dims[i] of the result.
struct Factor {
  Value value;
  DenseElementsAttr splat; ///< instead of `value`, a number for all
  SmallVector<int64_t> dims;

  Value materialize(OpBuilder &builder, Location loc) {
    if (value)
      return value;
    auto scalar = RankedTensorType::get({}, splat.getElementType());
    return nn::ConstantOp::create(builder, loc, splat.resizeSplat(scalar));
  }
};

/// A factor that is known when loading; nothing if it is not, or not repeated.
std::optional<Factor> getFactor(Value value) {
  if (!isKnownAtLoad(value))
    return std::nullopt;
  if (auto broadcast = value.getDefiningOp<nn::BroadcastOp>())
    return Factor{broadcast.getX(), nullptr,
                  SmallVector<int64_t>(broadcast.getDims())};
  if (DenseElementsAttr splat = nn::getSplat(value))
    return Factor{nullptr, splat, {}};
  return std::nullopt;
}

/// The weights of a contraction, and for each dimension of its result the
/// dimension of the weights that it is, or -1.
struct Weights {
  std::optional<unsigned> operand;
  SmallVector<int64_t> dimOfResultDim;
};

Weights getWeights(Operation *op) {
  Weights weights;
  if (!isa_and_nonnull<nn::ConvOp, nn::DotOp>(op))
    return weights;
  if (isKnownAtLoad(op->getOperand(1)))
    weights.operand = 1;
  else if (isa<nn::DotOp>(op) && isKnownAtLoad(op->getOperand(0)))
    weights.operand = 0;
  else
    return weights;
  // The sharding rule says which dimensions are the same.
  nn::ShardingRule rule = cast<nn::ShardableOpInterface>(op).getShardingRule();
  const auto &operandDims = rule.operands[*weights.operand];
  for (const SmallVector<int64_t> &factors : rule.results[0]) {
    const auto *found = llvm::find(operandDims, factors);
    weights.dimOfResultDim.push_back(
        found == operandDims.end() ? -1 : found - operandDims.begin());
  }
  return weights;
}

/// Where the factor lies along the weights; nothing if it does not.
std::optional<SmallVector<int64_t>> getDimsOfWeights(const Factor &factor,
                                                     const Weights &weights) {
  SmallVector<int64_t> dims;
  for (int64_t dim : factor.dims) {
    int64_t mapped = weights.dimOfResultDim[dim];
    if (mapped < 0 || (!dims.empty() && dims.back() >= mapped))
      return std::nullopt;
    dims.push_back(mapped);
  }
  return dims;
}

/// A contraction, and perhaps a term that is added to or subtracted from it.
struct Scaled {
  Operation *contraction = nullptr;
  Operation *sum = nullptr;
  Value term;
  Weights weights;
};

/// What `value` is, if nothing else uses it.
Scaled getScaled(Value value) {
  Scaled scaled;
  Operation *op = value.getDefiningOp();
  if (!op || !op->hasOneUse())
    return scaled;
  scaled.contraction = op;
  if (isa<nn::AddOp, nn::SubOp>(op)) {
    scaled.sum = op;
    bool isTermFirst = isa<nn::AddOp>(op) && isKnownAtLoad(op->getOperand(0));
    scaled.contraction = op->getOperand(isTermFirst ? 1 : 0).getDefiningOp();
    scaled.term = op->getOperand(isTermFirst ? 0 : 1);
    if (!scaled.contraction || !scaled.contraction->hasOneUse() ||
        !isKnownAtLoad(scaled.term))
      return {};
  }
  scaled.weights = getWeights(scaled.contraction);
  return scaled;
}

/// Whether two terms are repeated in the same way, so that their sum is no
/// larger than they are.
bool areAlike(Value a, Value b) {
  auto x = a.getDefiningOp<nn::BroadcastOp>();
  auto y = b.getDefiningOp<nn::BroadcastOp>();
  if (!x || !y)
    return !x && !y;
  return x.getDims() == y.getDims() && x.getX().getType() == y.getX().getType();
}

/// term * factor, before repetition if they are repeated alike.
Value scaleTerm(OpBuilder &b, Location loc, Value term, Value factorValue,
                Factor &factor) {
  auto broadcast = term.getDefiningOp<nn::BroadcastOp>();
  if (!broadcast || (!factor.splat && !areAlike(term, factorValue)))
    return nn::MulOp::create(b, loc, term, factorValue);
  RankedTensorType small = broadcast.getX().getType();
  Value smallFactor = factor.value;
  if (factor.splat)
    smallFactor =
        nn::ConstantOp::create(b, loc, factor.splat.resizeSplat(small));
  Value scaled = nn::MulOp::create(b, loc, broadcast.getX(), smallFactor);
  return nn::BroadcastOp::create(b, loc, broadcast.getType(), scaled,
                                 broadcast.getDims());
}

/// Rebuilds everything where `mul` stands: the factor need not be defined
/// before the contraction.
void rewrite(nn::MulOp mul, const Scaled &scaled, Factor &factor,
             ArrayRef<int64_t> dims, Value factorValue,
             PatternRewriter &rewriter) {
  unsigned number = *scaled.weights.operand;
  Value old = scaled.contraction->getOperand(number);
  Value repeated =
      nn::BroadcastOp::create(rewriter, mul.getLoc(), old.getType(),
                              factor.materialize(rewriter, mul.getLoc()), dims);
  Value weights = nn::MulOp::create(rewriter, mul.getLoc(), old, repeated);
  Operation *contraction = rewriter.clone(*scaled.contraction);
  contraction->setOperand(number, weights);
  contraction->setLoc(
      rewriter.getFusedLoc({scaled.contraction->getLoc(), mul.getLoc()}));
  if (!scaled.sum) {
    rewriter.replaceOp(mul, contraction->getResults());
    return;
  }
  IRMapping mapping;
  mapping.map(scaled.contraction->getResult(0), contraction->getResult(0));
  mapping.map(scaled.term, scaleTerm(rewriter, mul.getLoc(), scaled.term,
                                     factorValue, factor));
  rewriter.replaceOp(mul, rewriter.clone(*scaled.sum, mapping)->getResults());
}

LogicalResult foldScale(nn::MulOp mul, PatternRewriter &rewriter) {
  if (!isa<FloatType>(mul.getType().getElementType()))
    return failure();
  for (int side : {0, 1}) {
    Scaled scaled = getScaled(mul->getOperand(side));
    if (!scaled.weights.operand)
      continue;
    Value factorValue = mul->getOperand(1 - side);
    std::optional<Factor> factor = getFactor(factorValue);
    if (!factor)
      continue;
    std::optional<SmallVector<int64_t>> dims =
        getDimsOfWeights(*factor, scaled.weights);
    if (!dims)
      continue;
    rewrite(mul, scaled, *factor, *dims, factorValue, rewriter);
    return success();
  }
  return failure();
}

/// (x + a) + b = x + (a + b) where a and b are known when loading: what is left
/// of a bias before batch normalization, and its own.
LogicalResult mergeTerms(nn::AddOp outer, PatternRewriter &rewriter) {
  if (!isa<FloatType>(outer.getType().getElementType()))
    return failure();
  for (int side : {0, 1}) {
    auto inner = outer->getOperand(side).getDefiningOp<nn::AddOp>();
    Value b = outer->getOperand(1 - side);
    if (!inner || !inner->hasOneUse() || !isKnownAtLoad(b))
      continue;
    for (int innerSide : {0, 1}) {
      Value x = inner->getOperand(innerSide);
      Value a = inner->getOperand(1 - innerSide);
      if (!areAlike(a, b) || !isKnownAtLoad(a) || isKnownAtLoad(x))
        continue;
      Value sum = nn::AddOp::create(rewriter, outer.getLoc(), a, b);
      Location loc = rewriter.getFusedLoc({inner.getLoc(), outer.getLoc()});
      rewriter.replaceOp(outer, nn::AddOp::create(rewriter, loc, x, sum));
      return success();
    }
  }
  return failure();
}

struct FoldScalePass : impl::FoldScalePassBase<FoldScalePass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add(foldScale);
    patterns.add(mergeTerms);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace partita::simplify
