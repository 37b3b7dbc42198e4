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

/// Halves are compared and summed as f32.
static Term widen(Term x) {
  return x.element().getIntOrFloatBitWidth() < 32 ? x.cast(x.b().getF32Type())
                                                  : x;
}

/// Which labels count.
static Term findCounting(const LossSpec &spec, Term labels) {
  return compare(ComparePredicate::ne, labels,
                 labels.splat(double(spec.ignoreIndex)));
}

/// What `of` has for each label, of size 1 along `axis`. A label that does not
/// count need not be a class.
static Term pick(Term of, Term labels, Term counting, int64_t axis) {
  Shape one(of.shape());
  one[axis] = 1;
  Term safe = select(counting, labels, 0.0).reshape(one);
  return of.make<GatherElementsOp>(RankedTensorType::get(one, of.element()),
                                   of.get(), safe.get(), axis);
}

/// The negative logarithm of the probability of each label.
static Loss buildLabelLoss(const LossSpec &spec, Term logs, Term labels,
                           int64_t axis) {
  Term counts = findCounting(spec, labels);
  Term terms = -pick(logs, labels, counts, axis).reshape(labels.shape());
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
  Term isBounded = abs(x) < least;
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
    return select(size < delta, difference * difference * 0.5,
                  (size - delta / 2) * delta);
  }
  if (kind == "bce")
    return -(target * boundedLog(y) + (1.0 - target) * boundedLog(1.0 - y));
  // log(1 + exp(y)) - target * y, without overflow. The half of y + |y| has the
  // derivative 1/2 at 0, which max(y, 0) has not.
  Term size = abs(y);
  return (y + size) * 0.5 - target * y + grad::log(grad::exp(-size) + 1.0);
}

LabelCounts countLabels(const LossSpec &spec, Term scores, Term labels,
                        int64_t axis) {
  scores = widen(scores);
  Term counts = findCounting(spec, labels);
  Shape kept;
  for (int64_t dim = 0; dim < scores.rank(); ++dim)
    if (dim != axis)
      kept.push_back(dim);
  auto alongClasses = [&](Term each) {
    return each.broadcast(kept, scores.shape());
  };
  Term own = pick(scores, labels, counts, axis).reshape(labels.shape());
  Term ownOfAll = alongClasses(own);
  Term classes = labels.make<IotaOp>(
      RankedTensorType::get(scores.shape()[axis], labels.element()),
      int64_t(0));
  Term isFirst =
      compare(ComparePredicate::lt, classes.broadcast({axis}, scores.shape()),
              alongClasses(labels));
  // A number for each class before the label's, in the order of scores.
  Term ahead = select(compare(ComparePredicate::eq, scores, ownOfAll),
                      select(isFirst, scores.splat(1), 0.0), 0.0);
  ahead = select(compare(ComparePredicate::gt, scores, ownOfAll), 1.0, ahead);
  Term before = ahead.sum({axis});
  Term isNumber = compare(ComparePredicate::eq, own, own);
  auto countWhere = [&](Term holds) {
    return sumAll(select(holds, own.splat(1), 0.0));
  };
  auto countBelow = [&](double place) {
    return countWhere(counts && isNumber && before < place);
  };
  return {countWhere(counts), countBelow(1), countBelow(5)};
}

Term buildLabelCheck(const LossSpec &spec, Term labels, int64_t classes) {
  const int64_t rows = labels.shape()[0],
                length = labels.type().getNumElements() / rows;
  Term matrix = labels.reshape({rows, length});
  Term safe = select(findCounting(spec, matrix), matrix, 0.0);
  Term isRight = safe >= 0.0 && safe < double(classes);
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
  y = widen(y);
  if (spec.kind->target == Target::values)
    target = widen(target);
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
