//===- PackedRows.h - Rows of weights, packed or floats ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_SIMD_PACKEDROWS_H
#define PARTITA_RUNTIME_DEVICE_CPU_SIMD_PACKEDROWS_H

#include <cstdint>

namespace partita::runtime {

/// Rows of weights. Packed ones are w = (q - zero) * scale: each row has
/// `blocks` blocks of `bytes` bytes, a power of two, at least 4. A byte has 8 /
/// bits numbers q, the first one in its lowest bits. A block has a scale, and a
/// zero unless `zeros` is null: then it is 2^(bits - 1). Those of 32 bits are
/// floats: a row is one block of any number of them, without a scale.
struct PackedRows {
  const uint8_t *numbers = nullptr;
  const float *scales = nullptr;
  const float *zeros = nullptr;
  int64_t blocks = 0;
  int64_t bytes = 0;

  /// The rows from `row` on.
  PackedRows from(int64_t row) const {
    PackedRows rest = *this;
    rest.numbers += row * blocks * bytes;
    rest.scales += scales ? row * blocks : 0;
    rest.zeros += zeros ? row * blocks : 0;
    return rest;
  }
};

/// Rows [begin, end) of the weights, times a few vectors.
struct PackedProduct {
  PackedRows weights;
  int64_t begin = 0, end = 0;
  /// Dense, as `arrange` has ordered them, each as long as a row of weights.
  const float *vectors = nullptr;
  int64_t count = 0;       ///< of vectors, at most kFewVectors
  float *result = nullptr; ///< [count, step]; row i of the weights gives column
                           ///< i
  int64_t step = 0;
};
inline constexpr int64_t kFewVectors = 4;

inline constexpr int64_t kColumnStep = 16;

/// The functions for weights of so many bits: 2, 4, 8 or 32.
struct PackedFunctions {
  /// Orders the numbers of a vector as `multiply` meets the weights. What the
  /// weights have beyond its end is 0.
  void (*arrange)(const PackedRows &weights, const float *vector,
                  int64_t length, float *to);
  void (*multiply)(const PackedProduct &product);
  /// Writes rows [begin, end) as columns of floats. `step`: floats from row to
  /// row of the result, a multiple of kColumnStep; a row is written up to the
  /// next multiple of it.
  void (*unpack)(const PackedRows &weights, int64_t begin, int64_t end,
                 float *to, int64_t step);
};

PackedFunctions packedFunctionsBaseline(int64_t bits);
PackedFunctions packedFunctionsV3(int64_t bits);
PackedFunctions packedFunctionsV4(int64_t bits);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_SIMD_PACKEDROWS_H
