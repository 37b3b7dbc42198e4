//===- Matmul.cpp - Products as cuBLASLt computes them --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/rules/Matmul.h"

#include <cmath>
#include <limits>

namespace partita::rules {

using abi::DType;
using abi::PostOpKind;

namespace {

/// Rows, columns, steps and offsets of products of integers are multiples.
constexpr int64_t kIntegerMultiple = 4;

/// `inner` elements side by side, `outer` times.
bool isMatrix(int64_t inner, int64_t inner_step, int64_t outer,
              int64_t outer_step) {
  return (inner == 1 || inner_step == 1) && (outer == 1 || outer_step >= inner);
}

class ProductDescriber {
public:
  ProductDescriber(const Product &product, Matmul &matmul)
      : product(product), matmul(matmul), rank(product.result.shape.size()) {}

  const char *describe() {
    if (const char *why = describeTypes())
      return why;
    if (rank < 2 || product.lhs.shape.size() != rank ||
        product.rhs.shape.size() != rank)
      return "its operands have different ranks";
    rows = product.result.shape[rank - 2];
    columns = product.result.shape[rank - 1];
    depth = product.lhs.shape[rank - 1];
    for (int64_t extent : {rows, columns, depth})
      if (extent < 1 || extent > std::numeric_limits<int32_t>::max())
        return "a dimension is empty or longer than 32 bits can count";
    if (const char *why = describeMatrices())
      return why;
    if (const char *why = describePostOps())
      return why;
    if (const char *why = describeBatch())
      return why;
    return isInteger() ? describeIntegers() : nullptr;
  }

private:
  bool isInteger() const { return matmul.type == DType::i8; }

  const char *describeTypes() {
    matmul.type = product.lhs.type;
    matmul.result_type = product.result.type;
    if (product.rhs.type != matmul.type)
      return "its operands have different types";
    switch (matmul.type) {
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      return matmul.result_type == matmul.type
                 ? nullptr
                 : "its result has another type than its operands";
    case DType::i8:
      return matmul.result_type == DType::i32
                 ? nullptr
                 : "its result is not of 32-bit integers";
    default:
      return "it has no code for their type";
    }
  }

  const char *describeMatrices() {
    const Tensor &lhs = product.lhs, &rhs = product.rhs;
    const size_t row = rank - 2, column = rank - 1;
    const bool depth_inside_rhs =
        isMatrix(depth, strideOf(rhs, row), columns, strideOf(rhs, column));
    if (depth_inside_rhs &&
        (isInteger() ||
         !isMatrix(columns, strideOf(rhs, column), depth, strideOf(rhs, row))))
      matmul.a = matrix(depth, columns, strideOf(rhs, column), true);
    else if (isMatrix(columns, strideOf(rhs, column), depth,
                      strideOf(rhs, row)))
      matmul.a = matrix(columns, depth, strideOf(rhs, row), false);
    else
      return "its right side has gaps in both dimensions";
    if (isMatrix(depth, strideOf(lhs, column), rows, strideOf(lhs, row)))
      matmul.b = matrix(depth, rows, strideOf(lhs, row), false);
    else if (isMatrix(rows, strideOf(lhs, row), depth, strideOf(lhs, column)))
      matmul.b = matrix(rows, depth, strideOf(lhs, column), true);
    else
      return "its left side has gaps in both dimensions";
    return describeResult(product.result, matmul.d)
               ? nullptr
               : "its result does not lie in rows";
  }

  static Matrix matrix(int64_t inner, int64_t outer, int64_t step,
                       bool transposed) {
    Matrix made;
    made.rows = inner;
    made.columns = outer;
    made.step = outer == 1 ? inner : step;
    made.transposed = transposed;
    return made;
  }

  bool describeResult(const Tensor &tensor, Matrix &made) const {
    const int64_t row = strideOf(tensor, rank - 2);
    made = matrix(columns, rows, row, false);
    return isMatrix(columns, strideOf(tensor, rank - 1), rows, row);
  }

  const char *describePostOps() {
    constexpr const char *kOrder =
        "its epilogue has a post-op that cuBLASLt has "
        "not, or not in this place";
    if (isInteger() && !product.post_ops.empty())
      return "products of integers have no epilogue";
    for (size_t i = 0; i < product.post_ops.size(); ++i) {
      const PostOp &post_op = product.post_ops[i];
      const auto number = static_cast<int>(i);
      if (matmul.activation != Activation::none)
        return kOrder;
      switch (post_op.kind) {
      case PostOpKind::linear:
        if (matmul.addend >= 0 || matmul.bias >= 0 || !isScale(post_op))
          return kOrder;
        matmul.alpha *= static_cast<float>(post_op.alpha);
        break;
      case PostOpKind::add:
        if (!post_op.operand || post_op.operand->shape.size() != rank ||
            post_op.operand->type != matmul.result_type)
          return kOrder;
        // A bias is read when parts of the result are written already.
        if (matmul.bias < 0 && !post_op.is_result && isBias(*post_op.operand))
          matmul.bias = number;
        else if (matmul.addend < 0 && isWhole(*post_op.operand) &&
                 describeResult(*post_op.operand, matmul.c))
          matmul.addend = number;
        else
          return kOrder;
        break;
      case PostOpKind::relu:
        matmul.activation = Activation::relu;
        break;
      case PostOpKind::gelu_tanh:
        matmul.activation = Activation::gelu;
        break;
      default:
        return kOrder;
      }
    }
    return nullptr;
  }

  /// What is added was computed from samples of a function in f64.
  static bool isScale(const PostOp &post_op) {
    return std::fabs(post_op.beta) <= 1e-12 * std::fabs(post_op.alpha);
  }

  /// One value a column, side by side, for all rows and all products.
  bool isBias(const Tensor &tensor) const {
    for (size_t dim = 0; dim + 1 < rank; ++dim)
      if (strideOf(tensor, dim) != 0)
        return false;
    return (columns == 1 || strideOf(tensor, rank - 1) == 1) &&
           tensor.offset * floatBytes(tensor.type) % kBiasAlignment == 0;
  }

  bool isWhole(const Tensor &tensor) const {
    return tensor.shape[rank - 2] == rows && tensor.shape[rank - 1] == columns;
  }

  /// The library counts the products of a batch by one number, and steps from
  /// one to the next by one distance an operand.
  const char *describeBatch() {
    std::vector<std::pair<const Tensor *, Matrix *>> operands = {
        {&product.rhs, &matmul.a},
        {&product.lhs, &matmul.b},
        {&product.result, &matmul.d}};
    if (matmul.addend >= 0)
      operands.emplace_back(
          &*product.post_ops[static_cast<size_t>(matmul.addend)].operand,
          &matmul.c);
    for (size_t dim = rank - 2; dim-- > 0;) {
      const int64_t extent = product.result.shape[dim];
      if (extent == 1)
        continue;
      for (auto [tensor, matrix] : operands) {
        const int64_t step = strideOf(*tensor, dim);
        if (matmul.batch == 1)
          matrix->batch_step = step;
        else if (step != matrix->batch_step * matmul.batch)
          return "the products of its batch do not lie at equal distances";
      }
      matmul.batch *= extent;
      if (matmul.batch > std::numeric_limits<int32_t>::max())
        return "its batch is larger than 32 bits can count";
    }
    return nullptr;
  }

  /// See "IMMA kernels" in the documentation of cublasLtMatmul.
  const char *describeIntegers() const {
    if (!matmul.a.transposed || matmul.b.transposed)
      return "integers that are multiplied must lie side by side along the "
             "sum, on both sides";
    auto fits = [](int64_t value) { return value % kIntegerMultiple == 0; };
    bool all = fits(depth) && fits(columns);
    for (const Matrix *matrix : {&matmul.a, &matmul.b, &matmul.d})
      all &= fits(matrix->step) && fits(matrix->batch_step);
    for (const Tensor *tensor : {&product.lhs, &product.rhs, &product.result})
      all &= fits(tensor->offset);
    return all ? nullptr
               : "products of integers need extents, steps and offsets that "
                 "are multiples of 4";
  }

  const Product &product;
  Matmul &matmul;
  const size_t rank;
  int64_t rows = 0, columns = 0, depth = 0;
};

} // namespace

const char *describeMatmul(const Product &product, Matmul &matmul) {
  matmul = {};
  return ProductDescriber(product, matmul).describe();
}

} // namespace partita::rules
