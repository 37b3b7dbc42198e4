//===- DType.h - Element types in memory and in files -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names, sizes and values of the plan's element types. Types of less than one
// byte (int4, uint2, float4, ...) take one byte per element in memory.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_IO_DTYPE_H
#define PARTITA_RUNTIME_IO_DTYPE_H

#include "runtime/abi/plan_generated.h"
#include "runtime/base/Elements.h"

#include <cstdint>

namespace partita::runtime {

/// The name of the type in NumPy (or ml_dtypes), e.g. "float32", "bool".
inline const char *dtypeName(abi::DType dtype) {
  return elementType(dtype).name;
}

/// True for every type with a fraction, the one-byte floats included.
inline bool isFloat(abi::DType dtype) { return elementType(dtype).isFloat(); }
inline bool isSigned(abi::DType dtype) { return elementType(dtype).isSigned(); }

/// The value of the element at `element`. It is exact, except for int64 and
/// uint64 beyond 2^53.
double toDouble(abi::DType dtype, const uint8_t *element);

/// The value of an element of an integer type or bool; 0 for floats and for a
/// uint64 above the largest int64 (use the bytes there).
int64_t toInteger(abi::DType dtype, const uint8_t *element);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_IO_DTYPE_H
