//===- Term.cpp - Derivatives written as formulas -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/grad/Term.h"

#include "dialects/nn/fold/ConstantElements.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace partita::nn::grad {

Term Term::splat(double number) const {
  return {*builder,
          ConstantOp::create(*builder, type(), makeSplat(type(), number))};
}

Term Term::cast(Type to) const {
  return to == element() ? *this
                         : make<CastOp>(RankedTensorType::get(shape(), to),
                                        value, builder->getBoolAttr(true));
}

Term Term::reshape(ArrayRef<int64_t> to) const {
  return to == shape()
             ? *this
             : make<ReshapeOp>(RankedTensorType::get(to, element()), value);
}

Term Term::transpose(ArrayRef<int64_t> permutation) const {
  if (llvm::is_sorted(permutation))
    return *this;
  return make<TransposeOp>(
      RankedTensorType::get(permuted(shape(), permutation), element()), value,
      permutation);
}

Term Term::broadcast(ArrayRef<int64_t> dims, ArrayRef<int64_t> to) const {
  return to == shape() ? *this
                       : make<BroadcastOp>(RankedTensorType::get(to, element()),
                                           value, dims);
}

Term Term::sum(ArrayRef<int64_t> dims, bool keep) const {
  Shape left, kept(shape());
  for (auto [dim, size] : llvm::enumerate(shape()))
    if (llvm::is_contained(dims, static_cast<int64_t>(dim)))
      kept[dim] = 1;
    else
      left.push_back(size);
  Term x = dims.empty() ? *this
                        : make<ReduceOp>(RankedTensorType::get(left, element()),
                                         ReduceKind::sum, value, dims);
  return keep ? x.reshape(kept) : x;
}

Term Term::slice(ArrayRef<int64_t> starts, ArrayRef<int64_t> limits,
                 ArrayRef<int64_t> strides) const {
  Shape ones(rank(), 1), to;
  if (strides.empty())
    strides = ones;
  for (auto [start, limit, stride] : llvm::zip_equal(starts, limits, strides))
    to.push_back(llvm::divideCeil(limit - start, stride));
  return ArrayRef(to) == shape()
             ? *this
             : make<SliceOp>(RankedTensorType::get(to, element()), value,
                             starts, limits, strides);
}

Term Term::padOrCrop(ArrayRef<int64_t> low, ArrayRef<int64_t> high) const {
  Shape starts, limits, below, above, to;
  for (auto [size, l, h] : llvm::zip_equal(shape(), low, high)) {
    starts.push_back(std::max<int64_t>(-l, 0));
    limits.push_back(size + std::min<int64_t>(h, 0));
    below.push_back(std::max<int64_t>(l, 0));
    above.push_back(std::max<int64_t>(h, 0));
    to.push_back(size + l + h);
  }
  Term inner = slice(starts, limits);
  if (ArrayRef(to) == inner.shape())
    return inner;
  auto scalar = RankedTensorType::get({}, element());
  Value zero = ConstantOp::create(*builder, scalar, makeSplat(scalar, 0));
  return make<PadOp>(RankedTensorType::get(to, element()), inner.get(), zero,
                     below, above);
}

Term Term::spread(ArrayRef<int64_t> strides) const {
  if (llvm::all_of(strides, [](int64_t stride) { return stride == 1; }))
    return *this;
  // Each element gets a dimension of its own, whose rest is a border.
  Shape apart, low(2 * rank(), 0), high, joined, limits;
  for (auto [size, stride] : llvm::zip_equal(shape(), strides)) {
    apart.append({size, 1});
    high.append({0, stride - 1});
    joined.push_back(size * stride);
    limits.push_back(size == 0 ? 0 : (size - 1) * stride + 1);
  }
  return reshape(apart).padOrCrop(low, high).reshape(joined).slice(
      Shape(rank(), 0), limits);
}

Term Term::reverse(ArrayRef<int64_t> dims) const {
  return dims.empty() ? *this : make<ReverseOp>(type(), value, dims);
}

//===----------------------------------------------------------------------===//
// Operators and functions
//===----------------------------------------------------------------------===//

template <typename Op> static Term unary(Term x) {
  return x.make<Op>(x.type(), x.get());
}
template <typename Op> static Term binary(Term x, Term y) {
  return x.make<Op>(x.type(), x.get(), y.get());
}

Term operator+(Term x, Term y) { return binary<AddOp>(x, y); }
Term operator-(Term x, Term y) { return binary<SubOp>(x, y); }
Term operator*(Term x, Term y) { return binary<MulOp>(x, y); }
Term operator/(Term x, Term y) { return binary<DivOp>(x, y); }
Term operator-(Term x) { return unary<NegOp>(x); }
Term operator&&(Term x, Term y) { return binary<AndOp>(x, y); }

Term compare(ComparePredicate predicate, Term x, Term y) {
  return x.make<CompareOp>(RankedTensorType::get(x.shape(), x.b().getI1Type()),
                           predicate, x.get(), y.get());
}

Term select(Term predicate, Term x, Term y) {
  return x.make<SelectOp>(x.type(), predicate.get(), x.get(), y.get());
}

Term readIndices(Term indices, int64_t size) {
  indices = indices.cast(indices.b().getI64Type());
  const Term fromEnd = indices + static_cast<double>(size);
  const Term index = select(indices < 0.0, fromEnd, indices);
  const Term least = binary<MaxOp>(index, index.splat(0));
  return binary<MinOp>(least, least.splat(static_cast<double>(size - 1)));
}

Term cos(Term x) { return unary<CosOp>(x); }
Term cosh(Term x) { return unary<CoshOp>(x); }
Term exp(Term x) { return unary<ExpOp>(x); }
Term log(Term x) { return unary<LogOp>(x); }
Term pow(Term x, Term y) { return binary<PowOp>(x, y); }
Term round(Term x) { return unary<RoundEvenOp>(x); }
Term sign(Term x) { return unary<SignOp>(x); }
Term sin(Term x) { return unary<SinOp>(x); }
Term sinh(Term x) { return unary<SinhOp>(x); }
Term sqrt(Term x) { return unary<SqrtOp>(x); }

Term castLike(Term dy, Term x) {
  return isa<FloatType>(x.element()) ? dy.cast(x.element()) : Term();
}

/// Whether the value is one number everywhere, known when compiling or loading.
static bool isBound(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    DenseElementsAttr elements;
    if (matchPattern(op, m_Constant(&elements)))
      return elements.isSplat();
    if (isa<ParameterOp>(op))
      return getTensorType(value).getNumElements() == 1;
    if (!isa<BroadcastOp, ReshapeOp, CastOp>(op))
      return false;
    value = op->getOperand(0);
  }
  return false;
}

/// Whether `value` is x times one number.
static bool isMultipleOf(Value value, Value x) {
  auto product = value.getDefiningOp<MulOp>();
  return product && ((product.getLhs() == x && isBound(product.getRhs())) ||
                     (product.getRhs() == x && isBound(product.getLhs())));
}

Term shareOfChoice(ComparePredicate wins, Term x, Term other, Term dy) {
  Term ofEqual = dy * 0.5;
  if (isBound(other) || isMultipleOf(x, other))
    ofEqual = dy;
  else if (isBound(x) || isMultipleOf(other, x))
    ofEqual = dy.splat(0);
  return select(compare(wins, x, other), dy,
                select(compare(ComparePredicate::eq, x, other), ofEqual, 0.0));
}

Term shareOfRelu(Operation *relu, Term y, Term dy) {
  if (!relu->hasAttr(kHalfAtZeroAttr))
    return select(y > 0.0, dy, 0.0);
  Term x(dy.b(), relu->getOperand(0));
  return select(y > 0.0, dy, select(x == 0.0, dy * 0.5, 0.0));
}

Term shareOfSqrt(Operation *sqrt, Term y, Term dy) {
  if (!sqrt->hasAttr(kZeroAtZeroAttr))
    return dy / (y + y);
  // Divided by 1 there, so that nothing infinite is made.
  Term isZero = y == 0.0;
  return select(isZero, 0.0, dy / select(isZero, 1.0, y + y));
}

Term scatterSum(Term places, Term updates, int64_t rows) {
  Type element = updates.element();
  const bool isNarrow = element.getIntOrFloatBitWidth() < 32;
  Term wide = isNarrow ? updates.cast(updates.b().getF32Type()) : updates;
  auto type = RankedTensorType::get({rows, wide.shape()[1]}, wide.element());
  Value zeros = ConstantOp::create(wide.b(), type, makeSplat(type, 0));
  Term sums = wide.make<ScatterOp>(
      type, zeros, places.get(), wide.get(),
      ReduceKindAttr::get(wide.b().getContext(), ReduceKind::sum));
  return sums.cast(element);
}

Shape allDims(int64_t rank) {
  return llvm::to_vector(llvm::seq<int64_t>(0, rank));
}

} // namespace partita::nn::grad
