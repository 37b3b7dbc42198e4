//===- ContractStates.cpp - Products of states as they lie ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/RingBuffer.h"
#include "compiler/simplify/DotOperand.h"
#include "compiler/simplify/Passes.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using partita::nn::grad::Shape;
using partita::nn::grad::Term;

namespace partita::simplify {

#define GEN_PASS_DEF_CONTRACTSTATESPASS
#include "compiler/simplify/Passes.h.inc"

namespace {

bool isState(Value value) {
  auto parameter = value.getDefiningOp<nn::ParameterOp>();
  return parameter && parameter.getState();
}

/// Whether dimensions follow one another, so that they lie like one.
bool areNeighbours(ArrayRef<int64_t> dims) {
  for (size_t i = 1; i < dims.size(); ++i)
    if (dims[i] != dims[i - 1] + 1)
      return false;
  return true;
}

/// Lets a product read a state, and not its transpose, if it is a matrix for a
/// library, or one for each batch.
struct ReadTurned : OpRewritePattern<nn::DotOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::DotOp op,
                                PatternRewriter &rewriter) const override {
    DotOperand left(op, /*isRight=*/false), right(op, /*isRight=*/true);
    bool isChanged = false;
    for (DotOperand *operand : {&left, &right}) {
      DotOperand turned = *operand;
      turned.skipTranspose();
      if (turned.value == operand->value || !isState(turned.value) ||
          !areNeighbours(turned.free) || !areNeighbours(turned.batch) ||
          !areNeighbours(turned.contract))
        continue;
      *operand = turned;
      isChanged = true;
    }
    if (!isChanged)
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.getLhsMutable().assign(left.value);
      op.getRhsMutable().assign(right.value);
      op.setLhsBatch(left.batch);
      op.setRhsBatch(right.batch);
      op.setLhsContract(left.contract);
      op.setRhsContract(right.contract);
    });
    return success();
  }
};

/// The entries of a ring with new ones behind them are an operand. The ring is
/// multiplied as it lies; the result, or the other operand, is brought into the
/// ring's order instead.
struct MultiplyRing : OpRewritePattern<nn::DotOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::DotOp op,
                                PatternRewriter &rewriter) const override {
    for (bool isRight : {false, true}) {
      DotOperand operand(op, isRight);
      operand.skipTranspose();
      auto concat = operand.value.getDefiningOp<nn::ConcatOp>();
      if (!concat || concat.getOperands().size() != 2)
        continue;
      auto ring = analysis::getReadRing(concat.getOperands()[0]);
      if (ring && ring->dim == static_cast<int64_t>(concat.getDim()) &&
          succeeded(split(op, isRight, operand, *ring, concat.getOperands()[1],
                          rewriter)))
        return success();
    }
    return failure();
  }

private:
  static LogicalResult split(nn::DotOp op, bool isRight,
                             const DotOperand &operand,
                             const analysis::ReadRing &read, Value behind,
                             PatternRewriter &rewriter) {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    const DotOperand others(op, !isRight);
    const Term ring(b, read.ring), place(b, read.place), fresh(b, behind),
        other(b, others.value);
    const int64_t dim = read.dim, size = ring.shape()[dim];
    // Else there is more to bring into order than is read.
    if (llvm::is_contained(operand.batch, dim) || fresh.shape()[dim] > size)
      return failure();
    // Rings of several rows are a batch of the product.
    const auto *batch = llvm::find(operand.batch, read.row);
    if (read.hasRows() && batch == operand.batch.end())
      return failure();
    const int64_t row = batch - operand.batch.begin();
    const DotOperand &left = isRight ? others : operand,
                     &right = isRight ? operand : others;
    auto multiply = [&](Term x, Term y, ArrayRef<int64_t> shape) {
      return x.make<nn::DotOp>(
          RankedTensorType::get(shape, op.getType().getElementType()),
          isRight ? x.get() : y.get(), isRight ? y.get() : x.get(), left.batch,
          right.batch, left.contract, right.contract);
    };
    ArrayRef<int64_t> shape = op.getType().getShape();
    if (const auto *summed = llvm::find(operand.contract, dim);
        summed != operand.contract.end()) {
      const int64_t along = others.contract[summed - operand.contract.begin()];
      const int64_t otherRow = read.hasRows() ? others.batch[row] : 0;
      if (read.hasRows() && otherRow > along)
        return failure();
      Shape begin(other.rank()), middle(other.shape());
      middle[along] = size;
      const Term first = other.slice(begin, middle);
      begin[along] = size;
      const Term last = other.slice(begin, other.shape()),
                 ordered = analysis::orderAsRing(first, place, along, otherRow);
      const Term old = multiply(ordered, ring, shape),
                 added = multiply(last, fresh, shape);
      rewriter.replaceOp(op, (old + added).get());
      return success();
    }
    // Free dimensions follow those of the batch, the left side's first.
    const int64_t along =
        static_cast<int64_t>(left.batch.size()) +
        (isRight ? static_cast<int64_t>(left.free.size()) : 0) +
        (llvm::find(operand.free, dim) - operand.free.begin());
    Shape first(shape), last(shape);
    first[along] = size;
    last[along] = fresh.shape()[dim];
    const Term old = analysis::readRing(multiply(other, ring, first), place,
                                        along, read.hasRows() ? row : 0),
               added = multiply(other, fresh, last);
    rewriter.replaceOpWithNewOp<nn::ConcatOp>(
        op, op.getType(), ValueRange{old.get(), added.get()}, along);
    return success();
  }
};

struct ContractStatesPass : impl::ContractStatesPassBase<ContractStatesPass> {
  using ContractStatesPassBase::ContractStatesPassBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ReadTurned, MultiplyRing>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace partita::simplify
