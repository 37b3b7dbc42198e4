//===- Losses.cpp - Losses as formulas ------------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Losses.h"

#include <cmath>

using namespace mlir;
using namespace partita::nn;
using namespace partita::nn::grad;
using partita::nn::grad::Shape;

namespace partita::autodiff {

static Term abs(Term x) { return x.make<AbsOp>(x.type(), x.get()); }
static Term sumAll(Term x) { return x.sum(allDims(x.rank())); }

/// Each sample's term, its elements in `terms`, of which `counts` many count.
static Loss reduce(const LossSpec &spec, Term terms, Term counts) {
  return {sumAll(terms), spec.mean ? sumAll(counts) : Term()};
}

static Loss reduce(const LossSpec &spec, Term terms) {
  Term total = sumAll(terms);
  const auto count = static_cast<double>(terms.type().getNumElements());
  return {total, spec.mean ? total.splat(count) : Term()};
}

/// The negative logarithm of the probability of each label.
static Loss buildLabelLoss(const LossSpec &spec, Term logs, Term labels,
                           int64_t axis) {
  Shape one(logs.shape());
  one[axis] = 1;
  Term counts = compare(ComparePredicate::ne, labels,
                        labels.splat(double(spec.ignoreIndex)));
  // A label that does not count need not be a class.
  Term safe = select(counts, labels, 0.0).reshape(one);
  Term picked =
      logs.make<GatherElementsOp>(RankedTensorType::get(one, logs.element()),
                                  logs.get(), safe.get(), axis)
          .reshape(labels.shape());
  Term terms = -picked;
  if (spec.labelSmoothing > 0) {
    const auto classes = static_cast<double>(logs.shape()[axis]);
    terms = terms * (1 - spec.labelSmoothing) -
            logs.sum({axis}) * (spec.labelSmoothing / classes);
  }
  return reduce(spec, select(counts, terms, 0.0),
                select(counts, terms.splat(1), 0.0));
}

/// log(x), but -100 at least, as PyTorch bounds it. Where it is bounded, its
/// derivative is 0: that of the logarithm at 0 is not finite.
static Term boundedLog(Term x) {
  const auto &format = cast<FloatType>(x.element()).getFloatSemantics();
  const double least =
      std::max(std::exp(-100.0),
               llvm::APFloat::getSmallestNormalized(format).convertToDouble());
  Term isBounded = compare(ComparePredicate::lt, abs(x), x.splat(least));
  return select(isBounded, x.splat(-100),
                grad::log(select(isBounded, x.splat(1), x)));
}

static Term buildValueLoss(StringRef kind, double delta, Term y, Term target) {
  Term difference = y - target;
  if (kind == "mse")
    return difference * difference;
  if (kind == "l1")
    return abs(difference);
  if (kind == "huber") {
    Term size = abs(difference);
    return select(compare(ComparePredicate::lt, size, size.splat(delta)),
                  difference * difference * 0.5, (size - delta / 2) * delta);
  }
  if (kind == "bce")
    return -(target * boundedLog(y) + (1.0 - target) * boundedLog(1.0 - y));
  // log(1 + exp(y)) - target * y, without overflow. The half of y + |y| has the
  // derivative 1/2 at 0, which max(y, 0) has not.
  Term size = abs(y);
  return (y + size) * 0.5 - target * y + grad::log(grad::exp(-size) + 1.0);
}

Term buildLabelCheck(const LossSpec &spec, Term labels, int64_t classes) {
  const int64_t rows = labels.shape()[0],
                length = labels.type().getNumElements() / rows;
  Term matrix = labels.reshape({rows, length});
  Term counts = compare(ComparePredicate::ne, matrix,
                        matrix.splat(double(spec.ignoreIndex)));
  Term safe = select(counts, matrix, 0.0);
  Term isRight = safe >= 0.0 && compare(ComparePredicate::lt, safe,
                                        safe.splat(double(classes)));
  Term place = matrix.make<IotaOp>(matrix.type(), int64_t(1));
  Term wrong = select(isRight, place.splat(double(length)), place);
  auto one = RankedTensorType::get({rows}, labels.element());
  Term first = wrong.make<ReduceOp>(one, ReduceKind::min, wrong.get(), Shape{1})
                   .reshape({rows, 1});
  Term at = first.make<MinOp>(first.type(), first.get(),
                              first.splat(double(length - 1)).get());
  Term label = matrix.make<GatherElementsOp>(first.type(), matrix.get(),
                                             at.get(), int64_t(1));
  SmallVector<Value> both = {first, label};
  return first.make<ConcatOp>(
      RankedTensorType::get({rows, 2}, labels.element()), both, int64_t(1));
}

Loss buildLoss(const LossSpec &spec, Term y, Term target, int64_t axis) {
  if (y.element().getIntOrFloatBitWidth() < 32) {
    y = y.cast(y.b().getF32Type());
    if (spec.kind->target == Target::values)
      target = target.cast(y.element());
  }
  StringRef kind = spec.kind->name;
  if (kind == "output")
    return {y.reshape({}), y.reshape({}).splat(1)}; // of several: their mean
  if (kind == "sum")
    return {sumAll(y), Term()};
  if (kind == "nll")
    return buildLabelLoss(spec, y, target, axis);
  if (kind == "cross_entropy") {
    Term logs = y.make<SoftmaxOp>(y.type(), y.get(), axis, /*log=*/true);
    return buildLabelLoss(spec, logs, target, axis);
  }
  return reduce(spec, buildValueLoss(kind, spec.delta, y, target));
}

} // namespace partita::autodiff
