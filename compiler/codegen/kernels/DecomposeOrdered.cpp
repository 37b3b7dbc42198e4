//===- DecomposeOrdered.cpp - Ordered ops without an order ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where many threads compute at once, an element may be computed from all
// others by itself:
//
//   scan      the reduction of those up to its own place
//   top_k     the rank of each element: how many come before it; then the
//             element of each rank
//   scatter   the last update of a row, or the reduction of all its updates
//
// This takes more operations: by the length of the row, or by the updates.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/NNToLinalg.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace partita::codegen {
namespace {

using nn::ComparePredicate;

class OrderedBuilder : public ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  RankedTensorType type(ArrayRef<int64_t> shape, Type element) {
    return RankedTensorType::get(shape, element);
  }
  static RankedTensorType typeOf(Value x) {
    return cast<RankedTensorType>(x.getType());
  }
  RankedTensorType bits(Value x) { return typeOf(x).clone(getI1Type()); }

  Value spread(Value x, ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
    return nn::BroadcastOp::create(
        *this, type(shape, typeOf(x).getElementType()), x, dims);
  }
  Value place(ArrayRef<int64_t> shape, Type element, int64_t dim) {
    return nn::IotaOp::create(*this, type(shape, element), dim);
  }
  Value splat(RankedTensorType type, TypedAttr value) {
    return nn::ConstantOp::create(*this, type,
                                  DenseElementsAttr::get(type, value));
  }
  Value compare(ComparePredicate predicate, Value a, Value b) {
    return nn::CompareOp::create(*this, bits(a), predicate, a, b);
  }
  Value both(Value a, Value b) {
    return nn::AndOp::create(*this, a.getType(), a, b);
  }
  Value either(Value a, Value b) {
    return nn::OrOp::create(*this, a.getType(), a, b);
  }
  Value negate(Value a) { return nn::NotOp::create(*this, a.getType(), a); }
  Value select(Value which, Value a, Value b) {
    return nn::SelectOp::create(*this, a.getType(), which, a, b);
  }
  Value reduce(nn::ReduceKind kind, Value x, int64_t dim) {
    SmallVector<int64_t> shape(typeOf(x).getShape());
    shape.erase(shape.begin() + dim);
    return nn::ReduceOp::create(*this, typeOf(x).clone(shape), kind, x,
                                ArrayRef{dim});
  }
  Value combine(nn::ReduceKind kind, Value a, Value b) {
    switch (kind) {
    case nn::ReduceKind::sum:
      return nn::AddOp::create(*this, a.getType(), a, b);
    case nn::ReduceKind::prod:
      return nn::MulOp::create(*this, a.getType(), a, b);
    case nn::ReduceKind::max:
      return nn::MaxOp::create(*this, a.getType(), a, b);
    case nn::ReduceKind::min:
      return nn::MinOp::create(*this, a.getType(), a, b);
    }
    return {};
  }
  Value neutral(nn::ReduceKind kind, Value like) {
    return splat(typeOf(like),
                 nn::getNeutralElement(kind, typeOf(like).getElementType()));
  }

  /// NaN is larger than all numbers.
  Value less(Value a, Value b) {
    Value below = compare(ComparePredicate::lt, a, b);
    if (!isa<FloatType>(typeOf(a).getElementType()))
      return below;
    Value isNan = compare(ComparePredicate::ne, b, b);
    Value isNumber = compare(ComparePredicate::eq, a, a);
    return either(below, both(isNan, isNumber));
  }
};

Value decompose(OrderedBuilder &b, nn::ScanOp op) {
  const int64_t dim = op.getDim();
  RankedTensorType type = OrderedBuilder::typeOf(op.getX());
  SmallVector<int64_t> shape(type.getShape()), dims;
  shape.insert(shape.begin() + dim, type.getDimSize(dim));
  for (int64_t i = 0; i < type.getRank(); ++i)
    dims.push_back(i < dim ? i : i + 1);
  Value x = b.spread(op.getX(), shape, dims);
  Value before =
      b.compare(ComparePredicate::le, b.place(shape, b.getI64Type(), dim + 1),
                b.place(shape, b.getI64Type(), dim));
  return b.reduce(op.getKind(), b.select(before, x, b.neutral(op.getKind(), x)),
                  dim + 1);
}

Value decompose(OrderedBuilder &b, nn::TopKOp op) {
  RankedTensorType type = OrderedBuilder::typeOf(op.getX());
  const int64_t rows = type.getDimSize(0), columns = type.getDimSize(1),
                count = OrderedBuilder::typeOf(op.getResult()).getDimSize(1);
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  const int64_t pairs[] = {rows, columns, columns};
  Value mine = b.spread(op.getX(), pairs, {0, 1});
  Value other = b.spread(op.getX(), pairs, {0, 2});
  Value isLess = b.less(other, mine), isMore = b.less(mine, other);
  Value isFirst = op.getLargest() ? isMore : isLess;
  Value isEarlier = b.compare(ComparePredicate::lt, b.place(pairs, i32, 2),
                              b.place(pairs, i32, 1));
  Value isEqual = b.negate(b.either(isLess, isMore));
  Value isBefore = b.either(isFirst, b.both(isEqual, isEarlier));
  Value rank = b.reduce(nn::ReduceKind::sum,
                        nn::CastOp::create(b, b.type(pairs, i32), isBefore,
                                           /*saturate=*/true),
                        2);
  const int64_t places[] = {rows, count, columns};
  Value hit = b.compare(ComparePredicate::eq, b.spread(rank, places, {0, 2}),
                        b.place(places, i32, 1));
  Value column = b.place(places, i64, 2);
  Value zero = b.neutral(nn::ReduceKind::sum, column);
  return b.reduce(nn::ReduceKind::sum, b.select(hit, column, zero), 2);
}

Value decompose(OrderedBuilder &b, nn::ScatterOp op) {
  RankedTensorType type = OrderedBuilder::typeOf(op.getX());
  const int64_t rows = type.getDimSize(0), columns = type.getDimSize(1),
                updates = OrderedBuilder::typeOf(op.getPlaces()).getDimSize(0);
  Type i64 = b.getI64Type();
  const int64_t pairs[] = {rows, updates};
  Value hit =
      b.compare(ComparePredicate::eq, b.spread(op.getPlaces(), pairs, {1}),
                b.place(pairs, i64, 0));
  if (op.getCombine()) {
    nn::ReduceKind kind = *op.getCombine();
    const int64_t cube[] = {rows, updates, columns};
    Value all = b.spread(op.getUpdates(), cube, {1, 2});
    Value mine =
        b.select(b.spread(hit, cube, {0, 1}), all, b.neutral(kind, all));
    return b.combine(kind, op.getX(), b.reduce(kind, mine, 1));
  }
  Value none = b.splat(b.type(pairs, i64), b.getI64IntegerAttr(-1));
  Value last = b.reduce(nn::ReduceKind::max,
                        b.select(hit, b.place(pairs, i64, 1), none), 1);
  Value zero = b.splat(b.type({rows}, i64), b.getI64IntegerAttr(0));
  Value isWritten = b.compare(ComparePredicate::ge, last, zero);
  Value update = nn::GatherOp::create(b, type, op.getUpdates(), last, 0);
  return b.select(b.spread(isWritten, type.getShape(), {0}), update, op.getX());
}

} // namespace

void decomposeOrderedOps(Block &body) {
  for (Operation &op : llvm::make_early_inc_range(body))
    llvm::TypeSwitch<Operation *>(&op)
        .Case<nn::ScanOp, nn::TopKOp, nn::ScatterOp>([](auto found) {
          OrderedBuilder b(found.getLoc(), found);
          found.getResult().replaceAllUsesWith(decompose(b, found));
          found.erase();
        });
}

} // namespace partita::codegen
