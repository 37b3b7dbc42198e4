//===- RaiseAttention.cpp - Find attention and keep it whole --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks from the second product up to the first. What stands between them is
// read into one `Scores`; then q, k, v and the masks are brought to rank 4.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/RingBuffer.h"
#include "compiler/codegen/Backend.h"
#include "compiler/simplify/DotOperand.h"
#include "compiler/simplify/Passes.h"
#include "dialects/nn/fold/ConstantElements.h"
#include "dialects/nn/fold/EmptyTensors.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <functional>

using namespace mlir;
using partita::nn::grad::Term;

namespace partita::simplify {

#define GEN_PASS_DEF_RAISEATTENTIONPASS
#include "compiler/simplify/Passes.h.inc"

namespace {

/// A selection against a number below this is a mask that is added: it absorbs
/// every score.
constexpr double kMasked = -1e30;

/// softmax's operand, as product * scale * maskMul + maskAdd (each mask of the
/// shape that scores had where it stood).
struct Scores {
  nn::DotOp product;
  double scale = 1;
  Value maskMul;
  Value maskAdd;
  bool negateMaskAdd = false;
  nn::SelectOp select; ///< its predicate chooses scores, or the number
  /// A shape [B, H, M, L] that scores have on their way, if one has rank 4.
  SmallVector<int64_t> shape;
};

bool isScoresSide(Value value) {
  // Scores reach the softmax through these from a product of activations.
  for (int steps = 0; steps < 8; ++steps) {
    Operation *op = value.getDefiningOp();
    if (!op || !op->hasOneUse())
      return false;
    if (isa<nn::DotOp>(op))
      return true;
    if (isa<nn::MulOp, nn::AddOp>(op)) {
      if (isScoresSide(op->getOperand(1)))
        return true;
      value = op->getOperand(0);
    } else if (isa<nn::DivOp, nn::SubOp, nn::ReshapeOp>(op)) {
      value = op->getOperand(0);
    } else if (isa<nn::SelectOp>(op)) {
      bool isFalse = nn::getFloatSplat(op->getOperand(1)).has_value();
      value = op->getOperand(isFalse ? 2 : 1);
    } else {
      return false;
    }
  }
  return false;
}

/// The reading of one op, from the softmax upward: the additions and selections
/// come first, then the factors. Returns the value above, null if the op has no
/// place in an attention.
Value readStep(Operation *op, Scores &scores) {
  bool seenFactor = scores.scale != 1 || scores.maskMul;
  if (isa<nn::ReshapeOp>(op))
    return op->getOperand(0);
  if (auto select = dyn_cast<nn::SelectOp>(op)) {
    if (seenFactor || scores.maskAdd || scores.select)
      return nullptr;
    std::optional<double> onTrue = nn::getFloatSplat(select.getOnTrue());
    std::optional<double> number =
        onTrue ? onTrue : nn::getFloatSplat(select.getOnFalse());
    if (!number || *number > kMasked)
      return nullptr;
    scores.select = select;
    return onTrue ? select.getOnFalse() : select.getOnTrue();
  }
  if (isa<nn::AddOp, nn::SubOp>(op)) {
    if (seenFactor || scores.maskAdd || scores.select)
      return nullptr;
    bool swapped = isa<nn::AddOp>(op) && !isScoresSide(op->getOperand(0));
    scores.maskAdd = op->getOperand(swapped ? 0 : 1);
    scores.negateMaskAdd = isa<nn::SubOp>(op);
    return op->getOperand(swapped ? 1 : 0);
  }
  if (isa<nn::MulOp, nn::DivOp>(op)) {
    bool swapped = isa<nn::MulOp>(op) && !isScoresSide(op->getOperand(0));
    Value factor = op->getOperand(swapped ? 0 : 1);
    if (std::optional<double> number = nn::getFloatSplat(factor)) {
      if (isa<nn::DivOp>(op) && *number == 0)
        return nullptr;
      scores.scale *= isa<nn::DivOp>(op) ? 1 / *number : *number;
    } else {
      if (scores.maskMul || isa<nn::DivOp>(op))
        return nullptr;
      scores.maskMul = factor;
    }
    return op->getOperand(swapped ? 1 : 0);
  }
  return nullptr;
}

/// Reads everything between a softmax and the product above it.
std::optional<Scores> readScores(nn::SoftmaxOp softmax) {
  Scores scores;
  Value value = softmax.getX();
  for (;;) {
    Operation *op = value.getDefiningOp();
    if (!op || !op->hasOneUse())
      return std::nullopt;
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getRank() == 4)
      scores.shape.assign(type.getShape().begin(), type.getShape().end());
    if ((scores.product = dyn_cast<nn::DotOp>(op)))
      return scores;
    value = readStep(op, scores);
    if (!value)
      return std::nullopt;
    // Masks stand in shapes whose last two dimensions are those of the product.
    if (isa<nn::ReshapeOp>(op)) {
      auto above = cast<RankedTensorType>(value.getType());
      if (type.getRank() < 2 || above.getRank() < 2 ||
          above.getShape().take_back(2) != type.getShape().take_back(2))
        return std::nullopt;
    }
  }
}

/// Whether an operand of a product is a matrix, or several.
bool isMatrix(const DotOperand &operand) {
  return operand.free.size() == 1 && operand.contract.size() == 1;
}

/// Takes a number by which the value is multiplied into `scale`, through ops
/// that only move elements.
Value stripScale(Value value, double &scale, OpBuilder &b) {
  Operation *op = value.getDefiningOp();
  if (!op || !op->hasOneUse())
    return value;
  if (isa<nn::MulOp, nn::DivOp>(op)) {
    std::optional<double> number = nn::getFloatSplat(op->getOperand(1));
    if (!number || (isa<nn::DivOp>(op) && *number == 0))
      return value;
    scale *= isa<nn::DivOp>(op) ? 1 / *number : *number;
    return op->getOperand(0);
  }
  if (isa<nn::TransposeOp, nn::ReshapeOp>(op)) {
    Value inner = stripScale(op->getOperand(0), scale, b);
    if (inner == op->getOperand(0))
      return value;
    IRMapping mapping;
    mapping.map(op->getOperand(0), inner);
    return b.clone(*op, mapping)->getResult(0);
  }
  return value;
}

/// `value` with `perm` applied, then as [outer, rows, columns].
Term toRank4(Term value, ArrayRef<int64_t> perm, ArrayRef<int64_t> outer) {
  value = value.transpose(perm);
  SmallVector<int64_t> shape(outer);
  llvm::append_range(shape, value.shape().take_back(2));
  return value.reshape(shape);
}

/// A mask as rank 4, of size 1 where it is repeated.
Term toMask(ImplicitLocOpBuilder &b, Value mask, ArrayRef<int64_t> scores) {
  auto type = nn::getTensorType(mask);
  int64_t rank = type.getRank();
  SmallVector<int64_t> shape(scores);
  // Scores may have been split otherwise where the mask stands: then all of its
  // elements are there, in the same order.
  const bool isAlike = rank < 4 || type.getShape() == scores;
  auto broadcast = mask.getDefiningOp<nn::BroadcastOp>();
  if (broadcast && isAlike) {
    // With rank 3, batch and heads are one dimension: a mask along it has a
    // place in rank 4 only if one of the two is 1.
    bool isSplit = rank == 3 && scores[0] != 1 && scores[1] != 1;
    if (!isSplit || !llvm::is_contained(broadcast.getDims(), 0)) {
      shape.assign(4, 1);
      for (auto [i, dim] : llvm::enumerate(broadcast.getDims())) {
        bool isBatch = rank == 3 && dim == 0 && scores[0] != 1;
        shape[isBatch ? 0 : 4 - rank + dim] =
            broadcast.getX().getType().getDimSize(i);
      }
      mask = broadcast.getX();
    }
  }
  return Term(b, mask).reshape(shape);
}

/// 0 where scores are kept and the large negative number elsewhere, before
/// repetition if the predicate is repeated.
Value makeMaskOfSelect(OpBuilder &builder, nn::SelectOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  auto broadcast = op.getPredicate().getDefiningOp<nn::BroadcastOp>();
  const Term small(b, broadcast ? broadcast.getX() : op.getPredicate());
  const auto type = small.type().clone(op.getType().getElementType());
  const Term zero(b, nn::ConstantOp::create(b, nn::makeSplat(type, 0)));
  std::optional<double> onTrue = nn::getFloatSplat(op.getOnTrue());
  const Term mask =
      onTrue ? select(small, *onTrue, zero)
             : select(small, zero, *nn::getFloatSplat(op.getOnFalse()));
  return broadcast
             ? mask.broadcast(broadcast.getDims(), op.getType().getShape())
             : mask;
}

Value makeMaskAdd(OpBuilder &builder, Scores &scores) {
  if (scores.select)
    return makeMaskOfSelect(builder, scores.select);
  if (!scores.maskAdd || !scores.negateMaskAdd)
    return scores.maskAdd;
  ImplicitLocOpBuilder b(scores.maskAdd.getLoc(), builder);
  if (auto broadcast = scores.maskAdd.getDefiningOp<nn::BroadcastOp>())
    return (-Term(b, broadcast.getX()))
        .broadcast(broadcast.getDims(), broadcast.getType().getShape());
  return -Term(b, scores.maskAdd);
}

/// Whether a product reads less than all of an operand's bytes: it is repeated
/// for several heads, or what a ring holds, in its order.
bool isReadInPlace(Value operand) {
  while (Operation *op = operand.getDefiningOp()) {
    if (!isa<nn::ReshapeOp, nn::TransposeOp>(op))
      break;
    operand = op->getOperand(0);
  }
  if (auto broadcast = operand.getDefiningOp<nn::BroadcastOp>())
    return broadcast.getX().getType().getNumElements() <
           broadcast.getType().getNumElements();
  auto concat = operand.getDefiningOp<nn::ConcatOp>();
  return concat && analysis::getReadRing(concat.getOperands().front());
}

/// Whether attention of q [B, H, M, D] and v [B, H, L, E] becomes one op.
/// `hasFactor`: a mask multiplies the scores.
using KeepsAttention =
    std::function<bool(RankedTensorType q, RankedTensorType v, bool hasFactor)>;

LogicalResult raiseAttention(nn::DotOp op, PatternRewriter &rewriter,
                             const KeepsAttention &keeps) {
  // Probabilities may have been reshaped on their way to the second product.
  Value probabilities = op.getLhs();
  if (auto reshape = probabilities.getDefiningOp<nn::ReshapeOp>();
      reshape && reshape->hasOneUse() &&
      reshape.getX().getType().getRank() >= 2 &&
      reshape.getType().getRank() >= 2 &&
      reshape.getX().getType().getShape().take_back(2) ==
          reshape.getType().getShape().take_back(2))
    probabilities = reshape.getX();
  auto softmax = probabilities.getDefiningOp<nn::SoftmaxOp>();
  if (!softmax || !softmax->hasOneUse() || softmax.getLog() ||
      static_cast<int64_t>(softmax.getDim()) != softmax.getType().getRank() - 1)
    return failure();

  RankedTensorType pType = op.getLhs().getType();
  const DotOperand p(op, /*isRight=*/false), v(op, /*isRight=*/true);
  // Batch dimensions of the probabilities come first, in order.
  if (!isMatrix(p) || !isMatrix(v) || p.batch.size() > 2 ||
      !llvm::is_sorted(p.batch) || p.contract[0] != pType.getRank() - 1 ||
      p.free[0] != pType.getRank() - 2)
    return failure();

  std::optional<Scores> scores = readScores(softmax);
  if (!scores)
    return failure();
  nn::DotOp product = scores->product;
  const DotOperand q(product, /*isRight=*/false), k(product, /*isRight=*/true);
  if (!isMatrix(q) || !isMatrix(k) || q.batch.size() > 2 ||
      nn::hasNoElements(product.getLhs().getType()))
    return failure();

  // Batch and heads, by the tensor of rank 4 if there is one.
  ArrayRef<int64_t> pShape = pType.getShape();
  SmallVector<int64_t> full = scores->shape;
  if (full.empty()) {
    full = {1, 1, pShape[pShape.size() - 2], pShape.back()};
    for (auto [i, dim] : llvm::enumerate(p.batch))
      full[i] = pShape[dim];
  }
  ArrayRef<int64_t> outer = ArrayRef<int64_t>(full).take_front(2);

  auto ofRank4 = [&](Value value, int64_t rows, int64_t columns) {
    auto type = cast<RankedTensorType>(value.getType());
    return RankedTensorType::get(
        {outer[0], outer[1], rows, type.getDimSize(columns)},
        type.getElementType());
  };
  // The scores of few rows are smaller than keys that are written for them.
  if (2 * full[2] <= product.getLhs().getType().getDimSize(q.contract[0]) &&
      (isReadInPlace(product.getRhs()) || isReadInPlace(op.getRhs())))
    return failure();
  if (!keeps(ofRank4(q.value, full[2], q.contract[0]),
             ofRank4(v.value, full[3], v.free[0]), scores->maskMul != nullptr))
    return failure();

  auto order = [](const DotOperand &operand, ArrayRef<int64_t> rows,
                  ArrayRef<int64_t> columns) {
    return llvm::to_vector(
        llvm::concat<const int64_t>(operand.batch, rows, columns));
  };
  Location loc =
      rewriter.getFusedLoc({product.getLoc(), softmax.getLoc(), op.getLoc()});
  ImplicitLocOpBuilder b(loc, rewriter);
  double scale = scores->scale;
  const Term lhs(b, stripScale(q.value, scale, rewriter)),
      rhs(b, stripScale(k.value, scale, rewriter));
  const Term queries = toRank4(lhs, order(q, q.free, q.contract), outer),
             keys = toRank4(rhs, order(k, k.free, k.contract), outer),
             values =
                 toRank4(Term(b, v.value), order(v, v.contract, v.free), outer);
  Value maskMul = scores->maskMul, maskAdd = makeMaskAdd(rewriter, *scores);
  if (maskMul)
    maskMul = toMask(b, maskMul, full);
  if (maskAdd)
    maskAdd = toMask(b, maskAdd, full);

  SmallVector<int64_t> shape(outer);
  shape.append({full[2], values.shape()[3]});
  Value attention = nn::AttentionOp::create(
      b, RankedTensorType::get(shape, op.getType().getElementType()), queries,
      keys, values, maskMul, maskAdd, b.getF64FloatAttr(scale));
  rewriter.replaceOpWithNewOp<nn::ReshapeOp>(op, op.getType(), attention);
  return success();
}

struct Raise : OpRewritePattern<nn::DotOp> {
  Raise(MLIRContext *context, KeepsAttention keeps)
      : OpRewritePattern(context), keeps(std::move(keeps)) {}

  LogicalResult matchAndRewrite(nn::DotOp op,
                                PatternRewriter &rewriter) const override {
    return raiseAttention(op, rewriter, keeps);
  }

  const KeepsAttention keeps;
};

struct RaiseAttentionPass : impl::RaiseAttentionPassBase<RaiseAttentionPass> {
  using RaiseAttentionPassBase::RaiseAttentionPassBase;

  void runOnOperation() override {
    auto keeps = [&](RankedTensorType q, RankedTensorType v, bool hasFactor) {
      return !libraryCalls ||
             codegen::allBackends(getOperation(),
                                  [&](const codegen::Backend &backend) {
                                    return backend.keepsAttention(
                                        q, v, hasFactor, attentionCalls);
                                  });
    };
    RewritePatternSet patterns(&getContext());
    patterns.add<Raise>(&getContext(), keeps);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace partita::simplify
