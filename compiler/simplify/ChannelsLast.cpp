//===- ChannelsLast.cpp - Images with their channels innermost ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Rates.h"
#include "compiler/simplify/Passes.h"
#include "dialects/nn/fold/ConstantElements.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace partita::simplify {

#define GEN_PASS_DEF_CHANNELSLASTPASS
#include "compiler/simplify/Passes.h.inc"

namespace {

/// `value` with its dimensions permuted, without a new op where possible: a
/// transpose is merged with one before it, and what is repeated is repeated
/// along other dimensions. A transpose that moves only dimensions of size 1 is
/// made a reshape, which is free.
Value transposed(OpBuilder &b, Location loc, Value value,
                 ArrayRef<int64_t> perm) {
  auto type = cast<RankedTensorType>(value.getType());
  auto resultType = RankedTensorType::get(nn::permuted(type.getShape(), perm),
                                          type.getElementType());
  if (DenseElementsAttr splat = nn::getSplat(value))
    return nn::ConstantOp::create(b, value.getLoc(),
                                  splat.resizeSplat(resultType));
  if (auto inner = value.getDefiningOp<nn::TransposeOp>()) {
    SmallVector<int64_t> merged = nn::permuted(inner.getPermutation(), perm);
    return b.createOrFold<nn::TransposeOp>(loc, resultType, inner.getX(),
                                           merged);
  }
  if (auto broadcast = value.getDefiningOp<nn::BroadcastOp>()) {
    SmallVector<int64_t> inverse = invertPermutationVector(perm);
    SmallVector<int64_t> dims = nn::permuted(inverse, broadcast.getDims());
    if (llvm::is_sorted(dims))
      return nn::BroadcastOp::create(b, value.getLoc(), resultType,
                                     broadcast.getX(), dims);
    SmallVector<int64_t> order = llvm::to_vector(
        llvm::seq<int64_t>(0, static_cast<int64_t>(dims.size())));
    llvm::sort(order, [&](int64_t i, int64_t j) { return dims[i] < dims[j]; });
    Value small = transposed(b, loc, broadcast.getX(), order);
    return nn::BroadcastOp::create(b, value.getLoc(), resultType, small,
                                   nn::permuted(dims, order));
  }
  SmallVector<int64_t> moved;
  for (int64_t dim : perm)
    if (type.getDimSize(dim) != 1)
      moved.push_back(dim);
  if (llvm::is_sorted(moved))
    return b.createOrFold<nn::ReshapeOp>(loc, resultType, value);
  // Another user may have asked for the same.
  for (Operation *user : value.getUsers())
    if (auto same = dyn_cast<nn::TransposeOp>(user);
        same && same.getPermutation() == perm &&
        same->getBlock() == b.getInsertionBlock() &&
        same->isBeforeInBlock(&*b.getInsertionPoint()))
      return same;
  return nn::TransposeOp::create(b, loc, value, perm);
}

/// Moves transposes downward through a block, once, op by op. No op is visited
/// twice, so it ends.
class Mover {
public:
  void run(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block))
      visit(&op);
  }

private:
  void visit(Operation *op) {
    if (auto conv = dyn_cast<nn::ConvOp>(op))
      return visitConv(conv);
    if (auto conv = dyn_cast<nn::ConvDxOp>(op))
      return visitConv(conv);
    if (auto conv = dyn_cast<nn::ConvDwOp>(op))
      return visitConvDw(conv);
    if (auto window = dyn_cast<nn::WindowReduceOp>(op);
        window && isPool(window, window.getType()))
      return visitPool(window);
    if (auto window = dyn_cast<nn::WindowArgMaxOp>(op);
        window && isPool(window, window.getX().getType()))
      return visitPool(window);
    if (auto window = dyn_cast<nn::WindowSpreadOp>(op);
        window && isPool(window, window.getType()))
      return visitPool(window);
    if (auto reduce = dyn_cast<nn::ReduceOp>(op))
      return visitReduce(reduce);
    if (auto transpose = dyn_cast<nn::TransposeOp>(op))
      return visitTranspose(transpose);
    if (auto permutable = dyn_cast<nn::PermutableOpInterface>(op))
      return visitPermutable(permutable);
  }

  void replace(Operation *op, Value value) {
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
  }

  static SmallVector<int64_t> getChannelsLast(int64_t rank) {
    SmallVector<int64_t> order = {0};
    llvm::append_range(order, llvm::seq<int64_t>(2, rank));
    order.push_back(1);
    return order;
  }

  /// Whether windows slide over images of enough channels to fill vectors, in
  /// an order that nothing before it has changed.
  template <typename Op> static bool isPool(Op op, RankedTensorType type) {
    constexpr int64_t kLeastChannels = 8;
    ArrayRef<int64_t> window = op.getWindow();
    return type.getRank() >= 4 && type.getElementType().isF32() &&
           window[0] == 1 && window[1] == 1 && window.back() > 1 &&
           type.getDimSize(1) >= kLeastChannels &&
           !op->getOperand(0).template getDefiningOp<nn::TransposeOp>();
  }

  void visitPool(nn::PermutableOpInterface op) {
    SmallVector<int64_t> toLast =
        getChannelsLast(nn::getTensorType(op->getResult(0)).getRank());
    OpBuilder b(op);
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(transposed(b, op->getLoc(), operand, toLast));
    Operation *moved = op.buildPermuted(b, toLast, operands);
    replace(op, transposed(b, op->getLoc(), moved->getResult(0),
                           invertPermutationVector(toLast)));
  }

  /// A convolution, or its derivative to the image: of an image and weights.
  template <typename Op> void visitConv(Op conv) {
    if (conv.getLayout() != nn::ImageLayout::channels_first)
      return;
    SmallVector<int64_t> toLast = getChannelsLast(conv.getType().getRank());
    OpBuilder b(conv);
    Value x = transposed(b, conv.getLoc(), conv->getOperand(0), toLast);
    auto result = cast<Op>(
        nn::buildPermutedLike(b, conv, toLast, {x, conv.getWeights()}));
    result.setLayout(nn::ImageLayout::channels_last);
    replace(conv, transposed(b, conv.getLoc(), result,
                             invertPermutationVector(toLast)));
  }

  void visitConvDw(nn::ConvDwOp conv) {
    if (conv.getLayout() != nn::ImageLayout::channels_first)
      return;
    SmallVector<int64_t> toLast = getChannelsLast(conv.getType().getRank());
    OpBuilder b(conv);
    for (OpOperand &operand : conv->getOpOperands())
      operand.set(transposed(b, conv.getLoc(), operand.get(), toLast));
    conv.setLayout(nn::ImageLayout::channels_last);
  }

  void visitTranspose(nn::TransposeOp op) {
    if (!op.getX().getDefiningOp<nn::TransposeOp>())
      return;
    OpBuilder b(op);
    replace(op, transposed(b, op.getLoc(), op.getX(), op.getPermutation()));
  }

  /// A reduction commutes with every order of the dimensions that it leaves.
  void visitReduce(nn::ReduceOp op) {
    auto inner = op.getX().getDefiningOp<nn::TransposeOp>();
    if (!inner)
      return;
    SmallVector<int64_t> dims =
        nn::permuted(inner.getPermutation(), op.getDims());
    llvm::sort(dims);
    SmallVector<int64_t> shape, kept;
    RankedTensorType from = inner.getX().getType();
    for (int64_t dim = 0; dim < from.getRank(); ++dim)
      if (!llvm::is_contained(dims, dim)) {
        shape.push_back(from.getDimSize(dim));
        kept.push_back(dim);
      }
    // Position, among the dimensions now left, of each that op leaves.
    SmallVector<int64_t> order;
    for (auto [dim, source] : llvm::enumerate(inner.getPermutation()))
      if (!llvm::is_contained(op.getDims(), static_cast<int64_t>(dim)))
        order.push_back(llvm::find(kept, source) - kept.begin());
    OpBuilder b(op);
    Value reduced = nn::ReduceOp::create(
        b, op.getLoc(), RankedTensorType::get(shape, from.getElementType()),
        op.getKind(), inner.getX(), dims);
    replace(op, transposed(b, op.getLoc(), reduced, order));
  }

  void visitPermutable(nn::PermutableOpInterface permutable) {
    Operation *op = permutable;
    if (op->getNumResults() != 1)
      return;
    // The order to undo is that of the first operand that has one.
    nn::TransposeOp first;
    for (auto [number, operand] : llvm::enumerate(op->getOperands()))
      if (!first && permutable.isPermuted(number))
        first = operand.getDefiningOp<nn::TransposeOp>();
    if (!first)
      return;
    SmallVector<int64_t> order(first.getPermutation());
    SmallVector<int64_t> inverse = invertPermutationVector(order);
    if (!permutable.canPermute(inverse) ||
        !isWorthwhile(permutable, order, inverse))
      return;
    OpBuilder b(op);
    SmallVector<Value> operands;
    for (auto [number, operand] : llvm::enumerate(op->getOperands()))
      operands.push_back(permutable.isPermuted(number)
                             ? transposed(b, op->getLoc(), operand, inverse)
                             : operand);
    Operation *moved = permutable.buildPermuted(b, inverse, operands);
    replace(op, transposed(b, op->getLoc(), moved->getResult(0), order));
  }

  /// Whether more bytes are spared a transpose than need a new one.
  bool isWorthwhile(nn::PermutableOpInterface op, ArrayRef<int64_t> order,
                    ArrayRef<int64_t> inverse) {
    int64_t spared = 0, added = 0;
    for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
      if (!op.isPermuted(number))
        continue;
      int64_t bytes = nn::getByteSize(operand.getType());
      if (auto transpose = operand.getDefiningOp<nn::TransposeOp>()) {
        if (transpose.getPermutation() == order)
          spared += bytes;
      } else if (!isCheap(operand, inverse)) {
        added += bytes;
      }
    }
    return spared > added;
  }

  /// Whether a transpose of the value costs next to nothing in a step.
  bool isCheap(Value value, ArrayRef<int64_t> perm) {
    if (value.getDefiningOp<nn::BroadcastOp>() ||
        analysis::isKnownAtLoad(value))
      return true;
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      auto same = dyn_cast<nn::TransposeOp>(user);
      return same && same.getPermutation() == perm;
    });
  }
};

struct ChannelsLastPass : impl::ChannelsLastPassBase<ChannelsLastPass> {
  void runOnOperation() override {
    for (Block &block : getOperation().getBody())
      Mover().run(block);
  }
};

} // namespace
} // namespace partita::simplify
