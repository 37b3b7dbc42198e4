//===- ColumnRows.h - A vector times a matrix that lies by rows -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_SIMD_COLUMNROWS_H
#define PARTITA_RUNTIME_DEVICE_CPU_SIMD_COLUMNROWS_H

#include <cstdint>

namespace partita::runtime {

/// result[width] = vector[depth] . weights[depth, width]. Rows of the weights
/// are `stride` floats apart.
struct ColumnProduct {
  const float *weights = nullptr;
  int64_t depth = 0, width = 0, stride = 0;
  const float *vector = nullptr;
  float *result = nullptr;
};

void multiplyColumnsBaseline(const ColumnProduct &product);
void multiplyColumnsV3(const ColumnProduct &product);
void multiplyColumnsV4(const ColumnProduct &product);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_SIMD_COLUMNROWS_H
