//===- OrderedGradients.cpp - Derivatives of scans and scatters -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/grad/Term.h"

using namespace mlir;
using namespace partita::nn;
using namespace partita::nn::grad;
using partita::nn::grad::Shape;

/// Sums from the other end. Running products and extrema have no derivative
/// here.
FailureOr<Cotangents> ScanOp::buildVjp(const Term &dy) {
  if (getKind() != ReduceKind::sum)
    return failure();
  return Cotangents{dy.make<ScanOp>(dy.type(), ReduceKind::sum,
                                    dy.reverse(getDim()).get(), getDim())
                        .reverse(getDim())};
}

/// Looks up rows of a matrix; 0 for those whose place is outside of it.
static Term lookUp(Term x, Term places, Term isInside,
                   ArrayRef<int64_t> shape) {
  Term rows =
      x.make<GatherOp>(RankedTensorType::get(shape, x.element()), x.get(),
                       readIndices(places, x.shape()[0]).get(), int64_t(0));
  return select(isInside.broadcast({0}, shape), rows, 0.0);
}

/// Sums: both operands get the cotangent. Extrema: those that are the result
/// get the same share of it. Replaced rows of x get none, and of several
/// updates at one place only the last one gets some.
FailureOr<Cotangents> ScatterOp::buildVjp(const Term &dy) {
  ImplicitLocOpBuilder &b = dy.b();
  Term places(b, getPlaces()), updates(b, getUpdates());
  const int64_t rows = dy.shape()[0], count = updates.shape()[0];
  Term isInside = places >= 0.0 && places < double(rows);
  if (getCombine() == ReduceKind::sum) {
    return Cotangents{dy, Value(),
                      lookUp(dy, places, isInside, updates.shape())};
  }
  if (getCombine() == ReduceKind::max || getCombine() == ReduceKind::min) {
    Term x(b, getX()), y(b, getResult());
    auto indicator = [](Term predicate, Term like) {
      return select(predicate, like.splat(1), 0.0);
    };
    Term isX = compare(ComparePredicate::eq, x, y);
    Term isUpdate = compare(ComparePredicate::eq, updates,
                            lookUp(y, places, isInside, updates.shape())) &&
                    isInside.broadcast({0}, updates.shape());
    // How many are the result of each element.
    Term winners = dy.make<ScatterOp>(
        dy.type(), indicator(isX, x).get(), places.get(),
        indicator(isUpdate, updates).get(),
        ReduceKindAttr::get(b.getContext(), ReduceKind::sum));
    Term share = dy / winners;
    return Cotangents{select(isX, share, 0.0), Value(),
                      select(isUpdate,
                             lookUp(share, places, isInside, updates.shape()),
                             0.0)};
  }
  if (getCombine())
    return failure();
  Term kept = dy.make<ScatterOp>(dy.type(), dy.get(), places.get(),
                                 updates.splat(0).get(), ReduceKindAttr());
  // Who writes last: updates write their numbers in the same order.
  auto numbers = RankedTensorType::get({count, 1}, b.getI64Type()),
       writers = RankedTensorType::get({rows, 1}, b.getI64Type());
  Term number = dy.make<IotaOp>(numbers, int64_t(0));
  Term none =
      Term(b, ConstantOp::create(b, writers,
                                 DenseElementsAttr::get(writers, int64_t(-1))));
  Term last = none.make<ScatterOp>(writers, none.get(), places.get(),
                                   number.get(), ReduceKindAttr());
  Term isLast = compare(ComparePredicate::eq,
                        lookUp(last, places, isInside, {count, 1}), number);
  Term isWritten = isInside && isLast.reshape({count});
  return Cotangents{kept, Value(),
                    lookUp(dy, places, isWritten, updates.shape())};
}
