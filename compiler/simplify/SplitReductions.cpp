//===- SplitReductions.cpp - Reduce in two steps, for all cores -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/simplify/Passes.h"
#include "dialects/nn/grad/Term.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using partita::nn::grad::Term;

namespace partita::simplify {

#define GEN_PASS_DEF_SPLITREDUCTIONSPASS
#include "compiler/simplify/Passes.h.inc"

namespace {

// Elements from which two steps are worth their start.
constexpr int64_t kLeastElements = 1 << 16;
// A core computes so many neighbouring results at once.
constexpr int64_t kTogether = 64;
// As many parts keep all cores of a device busy.
constexpr int64_t kEnoughParts = 32;
// A dimension is cut into pieces of about so many elements, and so many pieces
// at most: more would only make the second step longer.
constexpr int64_t kPieceElements = 4096, kMostPieces = 1024;
// A piece has at least so many elements along the dimension.
constexpr int64_t kLeastLength = 16;

/// The dimensions whose reduction is the second step: the `outer` outermost
/// ones, and the one behind them in so many `pieces`. 0 and 1: one step is as
/// good.
struct Split {
  size_t outer = 0;
  int64_t pieces = 1;
};

/// Of a dimension with `size` elements, of about `wanted`: a divisor close by,
/// if there is one.
int64_t choosePieces(int64_t size, int64_t wanted) {
  wanted = std::min({wanted, kMostPieces, size / kLeastLength});
  if (wanted < 2)
    return 1;
  for (int64_t i = 0; i <= wanted / 2; ++i)
    for (int64_t pieces : {wanted - i, wanted + i})
      if (size % pieces == 0)
        return pieces;
  return wanted;
}

Split chooseSplit(nn::ReduceOp op) {
  RankedTensorType type = nn::getTensorType(op.getX());
  ArrayRef<int64_t> dims = op.getDims();
  if (type.getNumElements() < kLeastElements || dims.empty())
    return {};
  int64_t last = type.getRank() - 1;
  int64_t parts = nn::getTensorType(op.getResult()).getNumElements();
  // Results of which many lie next to each other are computed together.
  if (dims.back() != last)
    parts = std::max<int64_t>(
        parts / std::min(type.getDimSize(last), kTogether), 1);
  for (size_t outer = 0; outer < dims.size(); ++outer) {
    if (parts >= kEnoughParts)
      return {outer};
    if (outer + 1 < dims.size())
      parts *= type.getDimSize(dims[outer]);
  }
  // All but the innermost: then that one is cut, or stays.
  return {dims.size() - 1,
          choosePieces(type.getDimSize(dims.back()),
                       type.getNumElements() / parts / kPieceElements)};
}

class Splitter {
public:
  Splitter(nn::ReduceOp op) : op(op), b(op.getLoc(), op) {}

  /// Replaces the op. Returns the second step.
  nn::ReduceOp run(Split split) {
    SmallVector<int64_t> outer(op.getDims().take_front(split.outer)),
        inner(op.getDims().drop_front(split.outer));
    Value first;
    if (split.pieces == 1) {
      first = reduce(op.getX(), inner);
    } else {
      first = reducePieces(inner, split.pieces);
      outer.push_back(inner.front());
    }
    // Nothing before the outer dimensions vanished, so they keep their numbers.
    nn::ReduceOp second = reduce(first, outer);
    op.getResult().replaceAllUsesWith(
        Term(b, second).cast(op.getType().getElementType()).get());
    op.erase();
    for (Operation *dead : cutOps)
      dead->erase();
    return second;
  }

private:
  /// Sums of one step are rounded once, so those of the first step are not.
  Value widen(Value x) {
    auto type = dyn_cast<FloatType>(nn::getTensorType(x).getElementType());
    const bool rounds = op.getKind() == nn::ReduceKind::sum ||
                        op.getKind() == nn::ReduceKind::prod;
    if (!type || type.getWidth() >= 32 || !rounds)
      return x;
    return Term(b, x).cast(b.getF32Type());
  }

  nn::ReduceOp reduce(Value x, ArrayRef<int64_t> dims) {
    SmallVector<int64_t> shape;
    for (auto [dim, size] : llvm::enumerate(nn::getTensorType(x).getShape()))
      if (!llvm::is_contained(dims, int64_t(dim)))
        shape.push_back(size);
    x = widen(x);
    return nn::ReduceOp::create(b, nn::getTensorType(x).clone(shape),
                                op.getKind(), x, dims);
  }

  static Term slice(Term x, int64_t dim, int64_t from, int64_t to) {
    SmallVector<int64_t> starts(x.rank(), 0), limits(x.shape());
    starts[dim] = from;
    limits[dim] = to;
    return x.slice(starts, limits);
  }

  /// The shape with a dimension that is cut into pieces.
  static SmallVector<int64_t> cutShape(RankedTensorType type, int64_t dim,
                                       int64_t pieces) {
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] /= pieces;
    shape.insert(shape.begin() + dim, pieces);
    return shape;
  }

  /// A tensor with a dimension cut into pieces. What only the reduction needs
  /// is computed in that shape, so that it still is one kernel with it.
  Value cut(Value x, int64_t dim, int64_t pieces) {
    if (Value known = cuts.lookup(x))
      return known;
    SmallVector<int64_t> shape = cutShape(nn::getTensorType(x), dim, pieces);
    Operation *maker = x.getDefiningOp();
    const bool isOurs =
        maker && llvm::all_of(maker->getUsers(), [&](Operation *user) {
          return user == op || cutOps.contains(user);
        });
    if (!isOurs)
      return cuts[x] = Term(b, x).reshape(shape);
    if (isa<nn::PointwiseOpInterface>(maker)) {
      cutOps.insert(maker);
      SmallVector<Value> operands;
      for (Value operand : maker->getOperands())
        operands.push_back(cut(operand, dim, pieces));
      Operation *copy = b.clone(*maker);
      copy->setOperands(operands);
      copy->getResult(0).setType(nn::getTensorType(x).clone(shape));
      return cuts[x] = copy->getResult(0);
    }
    if (auto spread = dyn_cast<nn::BroadcastOp>(maker)) {
      cutOps.insert(maker);
      Term small(b, spread.getX());
      SmallVector<int64_t> dims;
      for (auto [from, to] : llvm::enumerate(spread.getDims())) {
        dims.push_back(to + (to > dim));
        if (to != dim)
          continue;
        small = small.reshape(cutShape(small.type(), from, pieces));
        dims.push_back(to + 1);
      }
      return cuts[x] = small.broadcast(dims, shape);
    }
    return cuts[x] = Term(b, x).reshape(shape);
  }

  /// Reduces pieces of the first of `dims`, and all of the others. What is left
  /// over of it is one more piece.
  Value reducePieces(ArrayRef<int64_t> dims, int64_t pieces) {
    const Term x(b, op.getX());
    const int64_t dim = dims.front(), size = x.shape()[dim],
                  whole = size / pieces * pieces;
    SmallVector<int64_t> within;
    for (int64_t inner : dims)
      within.push_back(inner + 1);
    if (whole == size)
      return reduce(cut(x, dim, pieces), within);
    const Term wholes = slice(x, dim, 0, whole);
    Value first =
        reduce(wholes.reshape(cutShape(wholes.type(), dim, pieces)), within);
    const Term rest(b, reduce(slice(x, dim, whole, size), dims));
    SmallVector<int64_t> shape(nn::getTensorType(first).getShape());
    shape[dim] = 1;
    const Term last = rest.reshape(shape);
    shape[dim] = pieces + 1;
    return nn::ConcatOp::create(b, nn::getTensorType(first).clone(shape),
                                ValueRange{first, last}, dim);
  }

  nn::ReduceOp op;
  ImplicitLocOpBuilder b;
  llvm::DenseMap<Value, Value> cuts;
  llvm::SetVector<Operation *> cutOps; ///< users before what they use
};

struct SplitReductionsPass
    : impl::SplitReductionsPassBase<SplitReductionsPass> {
  void runOnOperation() override {
    SmallVector<nn::ReduceOp> ops;
    getOperation().walk([&](nn::ReduceOp op) { ops.push_back(op); });
    for (nn::ReduceOp op : ops)
      // The second step may have many elements, too.
      for (Split split = chooseSplit(op); split.outer != 0 || split.pieces != 1;
           split = chooseSplit(op))
        op = Splitter(op).run(split);
  }
};

} // namespace
} // namespace partita::simplify
