//===- Matmul.h - Products as cuBLASLt computes them ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compiler asks which products the library computes, and the device how it
// is to be called. Both get the answer here.
//
//   D = activation(alpha * op(A) * op(B) + C + bias)
//
// The library's matrices have their columns one after another. So the product
// of rows result = lhs * rhs is the library's D = A * B with A = rhs, B = lhs.
//
//   lhs [5, 3] strides [3, 1]     B: 3 rows, 5 columns, step 3
//   rhs [3, 7] strides [1, 3]     A: 3 rows, 7 columns, step 3, transposed
//   result [5, 7] strides [7, 1]  D: 7 rows, 5 columns, step 7
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_RULES_MATMUL_H
#define PARTITA_RUNTIME_DEVICE_CUDA_RULES_MATMUL_H

#include "runtime/device/cuda/rules/Tensor.h"

#include <vector>

namespace partita::rules {

/// A call of kind `dot` (plan.fbs): [B.., M, K] * [B.., K, N] = [B.., M, N].
struct Product {
  Tensor lhs, rhs, result;
  std::vector<PostOp> post_ops;
};

/// A matrix in memory, and one for each product of a batch.
struct Matrix {
  int64_t rows = 1, columns = 1;
  int64_t step = 1;        ///< elements from a column to the next
  int64_t batch_step = 0;  ///< elements from a matrix to the next
  bool transposed = false; ///< the product reads it so
};

enum class Activation { none, relu, gelu };

struct Matmul {
  abi::DType type, result_type;
  Matrix a, b, c, d; ///< c: if there is an addend
  int64_t batch = 1;
  float alpha = 1;
  int addend = -1, bias = -1; ///< numbers of post-ops; -1: none
  Activation activation = Activation::none;
};

/// Null if the library computes the product; `matmul` is how. Else why it does
/// not, in words.
const char *describeMatmul(const Product &product, Matmul &matmul);

} // namespace partita::rules

#endif // PARTITA_RUNTIME_DEVICE_CUDA_RULES_MATMUL_H
