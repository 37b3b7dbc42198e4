//===- SimplifyProducts.cpp - Products that read and scale less -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention whose keys and values serve several heads each comes with keys that
// are repeated for each head, and scaled. With a cache of keys, both take
// longer than the product.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Rates.h"
#include "compiler/simplify/DotOperand.h"
#include "compiler/simplify/Passes.h"
#include "dialects/nn/grad/Term.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using partita::nn::grad::Shape;
using partita::nn::grad::Term;

namespace partita::simplify {

#define GEN_PASS_DEF_SIMPLIFYPRODUCTSPASS
#include "compiler/simplify/Passes.h.inc"

namespace {

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

/// x times a number.
struct Factored {
  Value x;
  std::optional<APFloat> factor;
};

/// What an operand is, if nobody else reads it.
Factored getFactored(Value value) {
  auto mul = value.getDefiningOp<nn::MulOp>();
  if (!mul || !mul->hasOneUse())
    return {value, std::nullopt};
  for (unsigned i : {0, 1}) {
    APFloat number(APFloat::Bogus());
    if (matchPattern(mul->getOperand(i), m_ConstantFloat(&number)))
      return {mul->getOperand(1 - i), number};
  }
  return {value, std::nullopt};
}

/// Moves all factors of a product to its smaller operand.
struct ScaleSmaller : OpRewritePattern<nn::DotOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::DotOp op,
                                PatternRewriter &rewriter) const override {
    const bool isRight = op.getRhs().getType().getNumElements() <
                         op.getLhs().getType().getNumElements();
    OpOperand &small = op->getOpOperand(isRight ? 1 : 0),
              &large = op->getOpOperand(isRight ? 0 : 1);
    Factored other = getFactored(large.get());
    // What only weights determine is scaled when the model is loaded.
    if (!other.factor || analysis::isKnownAtLoad(large.get()))
      return failure();
    Factored own = getFactored(small.get());
    APFloat factor = *other.factor;
    if (own.factor)
      factor.multiply(*own.factor, APFloat::rmNearestTiesToEven);
    // Two numbers may have no product that is one, and halves overflow early.
    const bool isNarrow =
        nn::getTensorType(own.x).getElementTypeBitWidth() < 32;
    if (!factor.isNormal() ||
        (isNarrow && abs(factor) > APFloat(factor.getSemantics(), 1)))
      return failure();
    auto type = cast<RankedTensorType>(own.x.getType());
    auto number = nn::ConstantOp::create(rewriter, op.getLoc(), type,
                                         DenseElementsAttr::get(type, factor));
    Value scaled =
        nn::MulOp::create(rewriter, op.getLoc(), type, own.x, number);
    rewriter.modifyOpInPlace(op, [&] {
      small.set(scaled);
      large.set(other.x);
    });
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Repeated matrices
//===----------------------------------------------------------------------===//

/// What is repeated, in a shape whose dimensions are `groups` of those of the
/// product's operand, one after another.
struct Repeated {
  nn::BroadcastOp broadcast;
  SmallVector<SmallVector<int64_t>> groups; ///< by dimension of the operand
  SmallVector<bool> isNew;                  ///< by dimension of the broadcast
};

/// Each dimension of the operand as consecutive ones of what it was reshaped
/// from; nothing if it is not.
std::optional<SmallVector<SmallVector<int64_t>>>
splitDims(ArrayRef<int64_t> shape, ArrayRef<int64_t> from) {
  SmallVector<SmallVector<int64_t>> groups;
  size_t next = 0;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    groups.emplace_back();
    int64_t product = 1;
    while (next < from.size() && (product < size || groups.back().empty())) {
      groups.back().push_back(static_cast<int64_t>(next));
      product *= from[next++];
    }
    if (dim + 1 == shape.size())
      for (; next < from.size() && from[next] == 1; ++next)
        groups.back().push_back(static_cast<int64_t>(next));
    if (product != size)
      return std::nullopt;
  }
  if (next != from.size())
    return std::nullopt;
  return groups;
}

std::optional<Repeated> getRepeated(Value operand) {
  Repeated found;
  auto reshape = operand.getDefiningOp<nn::ReshapeOp>();
  found.broadcast =
      (reshape ? reshape.getX() : operand).getDefiningOp<nn::BroadcastOp>();
  if (!found.broadcast)
    return std::nullopt;
  ArrayRef<int64_t> from = found.broadcast.getType().getShape();
  auto groups = splitDims(nn::getTensorType(operand).getShape(), from);
  if (!groups)
    return std::nullopt;
  found.groups = std::move(*groups);
  RankedTensorType x = found.broadcast.getX().getType();
  found.isNew.assign(from.size(), true);
  for (auto [i, dim] : llvm::enumerate(found.broadcast.getDims()))
    found.isNew[dim] = x.getDimSize(i) != from[dim];
  for (auto [dim, size] : llvm::enumerate(from))
    if (size == 1)
      found.isNew[dim] = false;
  return found;
}

/// A right side that is the same for several matrices of a batch is multiplied
/// by the rows of all of them at once.
struct ReadOnce : OpRewritePattern<nn::DotOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::DotOp op,
                                PatternRewriter &rewriter) const override {
    DotOperand rhs(op, /*isRight=*/true);
    rhs.skipTranspose();
    std::optional<Repeated> right = getRepeated(rhs.value);
    if (!right || !llvm::is_contained(right->isNew, true))
      return failure();
    ArrayRef<int64_t> from = right->broadcast.getType().getShape();
    RankedTensorType lhs = op.getLhs().getType();
    // The left side in as many dimensions: those of the batch become those of
    // the broadcast, and the repeated ones of them are rows.
    Shape leftShape, rightShape, leftBatch, rightBatch, leftContract,
        rightContract, place(from.size(), -1);
    for (auto [dim, size] : llvm::enumerate(from))
      if (!right->isNew[dim]) {
        place[dim] = static_cast<int64_t>(rightShape.size());
        rightShape.push_back(size);
      }
    SmallVector<int64_t> groupOf(lhs.getRank(), -1); // of a batch dimension
    int64_t last = -1; // batch dimensions come in order, before all others
    for (auto [left, dim] : llvm::zip_equal(op.getLhsBatch(), rhs.batch)) {
      if (left != last + 1)
        return failure();
      last = left;
      groupOf[left] = dim;
    }
    bool wasNew = false;
    SmallVector<int64_t> begins; // of the left dimensions in `leftShape`
    for (int64_t dim = 0; dim < lhs.getRank(); ++dim) {
      begins.push_back(static_cast<int64_t>(leftShape.size()));
      if (groupOf[dim] < 0) {
        leftShape.push_back(lhs.getDimSize(dim));
        continue;
      }
      for (int64_t part : right->groups[groupOf[dim]]) {
        // The result has them in this order, batch dimensions first.
        if (right->isNew[part]) {
          wasNew = true;
        } else if (from[part] != 1 && wasNew) {
          return failure();
        } else {
          leftBatch.push_back(static_cast<int64_t>(leftShape.size()));
          rightBatch.push_back(place[part]);
        }
        leftShape.push_back(from[part]);
      }
    }
    // Other dimensions of the right side are as they were.
    auto only = [&](int64_t dim) -> int64_t {
      int64_t found = -1;
      for (int64_t part : right->groups[dim])
        if (right->isNew[part] || (from[part] != 1 && found >= 0))
          return -1;
        else if (from[part] != 1 || found < 0)
          found = part;
      return found < 0 ? -1 : place[found];
    };
    for (auto [left, dim] :
         llvm::zip_equal(op.getLhsContract(), rhs.contract)) {
      if (only(dim) < 0)
        return failure();
      leftContract.push_back(begins[left]);
      rightContract.push_back(only(dim));
    }
    for (int64_t dim : rhs.free)
      if (only(dim) < 0)
        return failure();

    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    const Term left = Term(b, op.getLhs()).reshape(leftShape),
               once = Term(b, right->broadcast.getX()).reshape(rightShape);
    Shape result = nn::permuted(leftShape, leftBatch);
    for (int64_t dim :
         nn::getFreeDims(leftShape.size(), leftBatch, leftContract))
      result.push_back(leftShape[dim]);
    for (int64_t dim :
         nn::getFreeDims(rightShape.size(), rightBatch, rightContract))
      result.push_back(rightShape[dim]);
    if (llvm::product_of(result) != op.getType().getNumElements())
      return failure();
    Term product = left.make<nn::DotOp>(
        RankedTensorType::get(result, op.getType().getElementType()),
        left.get(), once.get(), leftBatch, rightBatch, leftContract,
        rightContract);
    rewriter.replaceOp(op, product.reshape(op.getType().getShape()).get());
    return success();
  }
};

struct SimplifyProductsPass
    : impl::SimplifyProductsPassBase<SimplifyProductsPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ScaleSmaller, ReadOnce>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace partita::simplify
