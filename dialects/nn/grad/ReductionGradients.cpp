//===- ReductionGradients.cpp - Derivatives of reductions -----------------===//
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

/// The derivative of a product of terms to each of them, where terms may be 0:
/// with one 0 only that term has a derivative, with several none has.
static Term differentiateProduct(Term x, Term y, Term dy,
                                 ArrayRef<int64_t> dims,
                                 llvm::function_ref<Term(Term)> spread) {
  Term isZero = x == 0.0;
  Term zeros = spread(select(isZero, x.splat(1), 0.0).sum(dims));
  auto others = x.make<ReduceOp>(y.type(), ReduceKind::prod,
                                 select(isZero, x.splat(1), x).get(), dims);
  Term ofZero = select(isZero && (zeros == 1.0), spread(others), 0.0);
  // Where nothing is 0 the quotient is right; elsewhere it is not looked at.
  Term ofOthers = spread(y) / select(isZero, x.splat(1), x);
  return spread(dy) * select(zeros == 0.0, ofOthers, ofZero);
}

FailureOr<Cotangents> ReduceOp::buildVjp(const Term &dy) {
  Term x(dy.b(), getX()), y(dy.b(), getResult());
  Shape kept;
  for (int64_t dim = 0; dim < x.rank(); ++dim)
    if (!llvm::is_contained(getDims(), dim))
      kept.push_back(dim);
  auto spread = [&](Term term) { return term.broadcast(kept, x.shape()); };
  switch (getKind()) {
  case ReduceKind::sum:
    return Cotangents{spread(dy)};
  case ReduceKind::prod:
    return Cotangents{differentiateProduct(x, y, dy, getDims(), spread)};
  case ReduceKind::max:
  case ReduceKind::min: {
    // Elements that are equal share, as with PyTorch's `amax`.
    Term isChosen = compare(ComparePredicate::eq, x, spread(y));
    Term count = select(isChosen, x.splat(1), 0.0).sum(getDims());
    return Cotangents{select(isChosen, spread(dy / count), 0.0)};
  }
  }
  return failure();
}

FailureOr<Cotangents> SoftmaxOp::buildVjp(const Term &dy) {
  Term y(dy.b(), getResult());
  const Shape dim = {static_cast<int64_t>(getDim())};
  auto sum = [&](Term x) {
    return x.sum(dim, /*keep=*/true).broadcast(allDims(x.rank()), x.shape());
  };
  return Cotangents{getLog() ? dy - grad::exp(y) * sum(dy)
                             : y * (dy - sum(dy * y))};
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

namespace {
/// A window that slides, and the tensors below and above it.
struct Windows {
  ArrayRef<int64_t> window, strides, dilations, low, from, to;

  int64_t rank() const { return static_cast<int64_t>(window.size()); }
  /// Whether no element is under two windows, and all lie inside.
  bool areApart() const {
    for (int64_t i = 0; i < rank(); ++i)
      if (window[i] > strides[i] || low[i] != 0 ||
          (dilations[i] != 1 && window[i] != 1) ||
          (to[i] - 1) * strides[i] + window[i] > from[i])
        return false;
    return true;
  }

  /// Each element of y for all elements under its window, if windows are apart.
  /// Elements under no window get 0.
  Term repeat(Term y) const {
    Shape apart, whole, dims, joined, low(rank(), 0), high, between, after;
    for (int64_t i = 0; i < rank(); ++i) {
      apart.append({to[i], 1});
      dims.append({2 * i, 2 * i + 1});
      whole.append({to[i], window[i]});
      between.append({0, strides[i] - window[i]});
      joined.push_back(to[i] * strides[i]);
      high.push_back(from[i] - to[i] * strides[i]);
    }
    return y.reshape(apart)
        .broadcast(dims, whole)
        .padOrCrop(Shape(2 * rank(), 0), between)
        .reshape(joined)
        .padOrCrop(low, high);
  }

  /// The sum of the elements of y whose windows hold an element, for each.
  Term sum(Term y) const {
    if (areApart())
      return repeat(y);
    Shape ones(rank(), 1), low, high, crop, cropHigh;
    Term apart = y.spread(strides);
    for (int64_t i = 0; i < rank(); ++i) {
      const int64_t reach = (window[i] - 1) * dilations[i],
                    below = reach - this->low[i],
                    above = from[i] + reach - below - apart.shape()[i];
      low.push_back(std::max<int64_t>(below, 0));
      high.push_back(std::max<int64_t>(above, 0));
      crop.push_back(std::min<int64_t>(below, 0));
      cropHigh.push_back(std::min<int64_t>(above, 0));
    }
    return y.make<WindowReduceOp>(RankedTensorType::get(from, y.element()),
                                  ReduceKind::sum,
                                  apart.padOrCrop(crop, cropHigh).get(), window,
                                  ones, dilations, low, high);
  }
};
} // namespace

/// The flat, row-major index into a tensor of this shape of each element that
/// `chosen` names by its number within a window.
template <typename WindowOp>
static Term getPlaces(WindowOp op, Term chosen, ArrayRef<int64_t> shape) {
  Term rest = chosen.cast(chosen.b().getI64Type()), places = rest.splat(0);
  int64_t apart = 1;
  for (int64_t dim = chosen.rank() - 1; dim >= 0; --dim) {
    const int64_t size = op.getWindow()[dim];
    Term place =
        rest.make<IotaOp>(rest.type(), dim) * double(op.getStrides()[dim]) -
        double(op.getPadsLow()[dim]);
    if (size != 1) {
      Term others = rest / rest.splat(double(size));
      place = place +
              (rest - others * double(size)) * double(op.getDilations()[dim]);
      rest = others;
    }
    places = places + place * double(apart);
    apart *= shape[dim];
  }
  return places;
}

Value WindowArgMaxOp::buildPlaces(ImplicitLocOpBuilder &b) {
  return getPlaces(*this, Term(b, getResult()), getX().getType().getShape());
}

/// The element of each window that was chosen: the first of equal ones.
FailureOr<Cotangents> WindowReduceOp::buildVjp(const Term &dy) {
  Term x(dy.b(), getX());
  Windows windows{getWindow(),  getStrides(), getDilations(),
                  getPadsLow(), x.shape(),    dy.shape()};
  if (getKind() == ReduceKind::sum)
    return Cotangents{windows.sum(dy)};
  if (getKind() == ReduceKind::prod)
    return failure();
  Term ordered = getKind() == ReduceKind::max ? x : -x;
  Term chosen = x.make<WindowArgMaxOp>(
      RankedTensorType::get(dy.shape(), dy.b().getI32Type()), ordered.get(),
      getWindow(), getStrides(), getDilations(), getPadsLow(), getPadsHigh(),
      Value());
  return Cotangents{dy.make<WindowSpreadOp>(
      x.type(), dy.get(), chosen.get(), getWindow(), getStrides(),
      getDilations(), getPadsLow(), getPadsHigh())};
}

/// What lies where each element was added.
FailureOr<Cotangents> WindowSpreadOp::buildVjp(const Term &dx) {
  Term chosen(dx.b(), getChosen());
  const int64_t size = dx.type().getNumElements(),
                count = chosen.type().getNumElements();
  Term places = getPlaces(*this, chosen, dx.shape()).reshape({count});
  Term found = dx.make<GatherOp>(RankedTensorType::get({count}, dx.element()),
                                 dx.reshape({size}).get(),
                                 readIndices(places, size).get(), int64_t(0));
  return Cotangents{found.reshape(chosen.shape()), Value()};
}
