//===- Term.h - Derivatives written as formulas -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A `Term` is a value together with the builder of what is computed from it.
// Derivatives read as in a book: the cotangent of tanh's operand is
//
//   dy * (1.0 - y * y)
//
// where y is the result and dy its cotangent. All operands of an operator have
// one shape and element type, as those of pointwise ops have. A number is a
// tensor of that type that has it everywhere. Constants fold as they are made.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_GRAD_TERM_H
#define PARTITA_DIALECTS_NN_GRAD_TERM_H

#include "dialects/nn/NNDialect.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace partita::nn::grad {

using Shape = llvm::SmallVector<int64_t>;

class Term {
public:
  /// No contribution: the derivative is zero everywhere.
  Term() = default;
  Term(mlir::ImplicitLocOpBuilder &builder, mlir::Value value)
      : builder(&builder), value(value) {}

  operator mlir::Value() const { return value; }
  mlir::Value get() const { return value; }
  mlir::RankedTensorType type() const { return getTensorType(value); }
  llvm::ArrayRef<int64_t> shape() const { return type().getShape(); }
  int64_t rank() const { return type().getRank(); }
  mlir::Type element() const { return type().getElementType(); }
  mlir::ImplicitLocOpBuilder &b() const { return *builder; }

  /// An op on this value and others.
  template <typename Op, typename... Args> Term make(Args &&...args) const {
    return {*builder, builder->createOrFold<Op>(std::forward<Args>(args)...)};
  }

  /// A tensor of the same type with one number everywhere.
  Term splat(double number) const;
  Term cast(mlir::Type element) const;
  Term reshape(llvm::ArrayRef<int64_t> shape) const;
  Term transpose(llvm::ArrayRef<int64_t> permutation) const;
  /// Dimension i becomes dimension dims[i].
  Term broadcast(llvm::ArrayRef<int64_t> dims,
                 llvm::ArrayRef<int64_t> shape) const;
  /// The sum along dimensions, which increase. With `keep` they stay, with size
  /// 1.
  Term sum(llvm::ArrayRef<int64_t> dims, bool keep = false) const;
  Term slice(llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> limits,
             llvm::ArrayRef<int64_t> strides = {}) const;
  /// Borders of zeros. A negative width removes as many elements.
  Term padOrCrop(llvm::ArrayRef<int64_t> low,
                 llvm::ArrayRef<int64_t> high) const;
  /// Zeros between elements: neighbours along dimension i are `strides[i]`
  /// apart; n elements become (n - 1) * stride + 1.
  Term spread(llvm::ArrayRef<int64_t> strides) const;
  Term reverse(llvm::ArrayRef<int64_t> dims) const;

private:
  mlir::ImplicitLocOpBuilder *builder = nullptr;
  mlir::Value value;
};

Term operator+(Term x, Term y);
Term operator-(Term x, Term y);
Term operator*(Term x, Term y);
Term operator/(Term x, Term y);
Term operator-(Term x);
inline Term operator+(Term x, double y) { return x + x.splat(y); }
inline Term operator-(Term x, double y) { return x - x.splat(y); }
inline Term operator-(double x, Term y) { return y.splat(x) - y; }
inline Term operator*(Term x, double y) { return x * x.splat(y); }

/// Comparisons give tensors of `i1`.
Term compare(ComparePredicate predicate, Term x, Term y);
inline Term operator>(Term x, double y) {
  return compare(ComparePredicate::gt, x, x.splat(y));
}
inline Term operator>=(Term x, double y) {
  return compare(ComparePredicate::ge, x, x.splat(y));
}
inline Term operator<(Term x, double y) {
  return compare(ComparePredicate::lt, x, x.splat(y));
}
inline Term operator==(Term x, double y) {
  return compare(ComparePredicate::eq, x, x.splat(y));
}
Term operator&&(Term x, Term y);
/// x where the predicate holds, y elsewhere.
Term select(Term predicate, Term x, Term y);
inline Term select(Term predicate, Term x, double y) {
  return select(predicate, x, x.splat(y));
}
inline Term select(Term predicate, double x, Term y) {
  return select(predicate, y.splat(x), y);
}

/// Indices of a dimension as nn.gather reads them, in i64: from the end if they
/// are negative, clamped to the range.
Term readIndices(Term indices, int64_t size);

Term cos(Term x);
Term cosh(Term x);
Term exp(Term x);
Term log(Term x);
Term pow(Term x, Term y);
Term round(Term x); ///< to the nearest integer, halves to even
Term sign(Term x);
Term sin(Term x);
Term sinh(Term x);
Term sqrt(Term x);

/// dy in the element type of x; no contribution if x is no float.
Term castLike(Term dy, Term x);

/// The share of dy that goes to `x` where `wins` compares it with the operand
/// `other` of a maximum (gt) or minimum (lt). Of equal operands each gets half,
/// as with PyTorch's `maximum`. But a bound of `clamp`, one number everywhere,
/// gets none of it, and of x and slope * x (LeakyReLU) the second gets all.
Term shareOfChoice(ComparePredicate wins, Term x, Term other, Term dy);

/// On a ReLU that is a part of a function without a kink at 0.
inline constexpr llvm::StringLiteral kHalfAtZeroAttr = "nn.half_at_zero";

/// The share of dy that goes to the operand of a ReLU of which `y` is the
/// result. At 0 there is none, or half of it with `kHalfAtZeroAttr`.
Term shareOfRelu(mlir::Operation *relu, Term y, Term dy);

/// On a square root that is the last step of a norm.
inline constexpr llvm::StringLiteral kZeroAtZeroAttr = "nn.zero_at_zero";

/// On a gather: the index whose rows pass nothing back, as the `padding_idx` of
/// PyTorch's embedding.
inline constexpr llvm::StringLiteral kPaddingIndexAttr = "nn.padding_index";

/// The share of dy that goes to the operand of a square root of which `y` is
/// the result. At 0 it is infinite, or 0 with `kZeroAtZeroAttr`.
Term shareOfSqrt(mlir::Operation *sqrt, Term y, Term dy);

/// A matrix of zeros [rows, columns], upon which row i of `updates` is added at
/// row `places[i]`. Narrow floats are summed as f32.
Term scatterSum(Term places, Term updates, int64_t rows);

/// All dimensions of a rank.
Shape allDims(int64_t rank);

} // namespace partita::nn::grad

#endif // PARTITA_DIALECTS_NN_GRAD_TERM_H
