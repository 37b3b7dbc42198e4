//===- Elements.h - Element types, and checked arithmetic -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_BASE_ELEMENTS_H
#define PARTITA_RUNTIME_BASE_ELEMENTS_H

#include "runtime/abi/plan_generated.h"

#include <cstdint>

namespace partita::runtime {

/// Bytes of one element in memory; 0 if `type` is not in the enumeration.
inline int64_t elementBytes(abi::DType type) {
  switch (type) {
  case abi::DType::f64:
  case abi::DType::i64:
  case abi::DType::u64:
    return 8;
  case abi::DType::f32:
  case abi::DType::i32:
  case abi::DType::u32:
    return 4;
  case abi::DType::f16:
  case abi::DType::bf16:
  case abi::DType::i16:
  case abi::DType::u16:
    return 2;
  case abi::DType::i8:
  case abi::DType::u8:
  case abi::DType::boolean:
  case abi::DType::f8e4m3fn:
  case abi::DType::f8e4m3fnuz:
  case abi::DType::f8e5m2:
  case abi::DType::f8e5m2fnuz:
  case abi::DType::f8e8m0:
  case abi::DType::f4e2m1:
  case abi::DType::i4:
  case abi::DType::u4:
  case abi::DType::i2:
  case abi::DType::u2:
    return 1;
  }
  return 0;
}

/// result = a * b; false on overflow.
inline bool checkedMul(int64_t a, int64_t b, int64_t &result) {
  return !__builtin_mul_overflow(a, b, &result);
}
/// result = a + b; false on overflow.
inline bool checkedAdd(int64_t a, int64_t b, int64_t &result) {
  return !__builtin_add_overflow(a, b, &result);
}

/// Length of a vector of the plan; 0 if it is absent.
template <typename Vector> int64_t length(const Vector *vector) {
  return vector ? static_cast<int64_t>(vector->size()) : 0;
}

/// Whether a vector of 8-byte numbers is aligned. The verifier of FlatBuffers
/// does not check that. An empty vector may begin anywhere, because FlatBuffers
/// does not align it.
inline bool isAligned(const flatbuffers::Vector<int64_t> *numbers) {
  return length(numbers) == 0 ||
         reinterpret_cast<uintptr_t>(numbers->Data()) % sizeof(int64_t) == 0;
}

/// The number of elements of a shape. The product must be known not to
/// overflow.
inline int64_t elementCount(const flatbuffers::Vector<int64_t> *shape) {
  int64_t count = 1;
  for (int64_t i = 0; i < length(shape); ++i)
    count *= shape->Get(i);
  return count;
}

/// A string of the plan; empty if it is absent.
inline const char *text(const flatbuffers::String *string) {
  return string ? string->c_str() : "";
}

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_BASE_ELEMENTS_H
