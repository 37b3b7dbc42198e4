//===- Elements.h - Element types, and checked arithmetic -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_BASE_ELEMENTS_H
#define PARTITA_RUNTIME_BASE_ELEMENTS_H

#include "runtime/abi/plan_generated.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

namespace partita::runtime {

/// What a float format does with its largest exponent.
enum class Specials {
  ieee, ///< infinities and NaNs
  fn,   ///< no infinity; NaN is all ones
  fnuz, ///< no infinity, no negative zero; its pattern is the NaN
  none  ///< every pattern is a number
};

/// What is known of a type of elements.
struct ElementType {
  const char *name; ///< in NumPy, or ml_dtypes
  char kind;        ///< NumPy's letter: f, i, u, or b for bool
  int onnx;         ///< TensorProto.DataType
  int bytes;        ///< in memory
  int bits;         ///< in files of ONNX
  /// Of floats. What these leave of the bits is the sign.
  int exponentBits = 0, mantissaBits = 0, bias = 0;
  Specials specials = Specials::none;

  bool isFloat() const { return kind == 'f'; }
  bool isSigned() const {
    return kind == 'i' || (isFloat() && bits > exponentBits + mantissaBits);
  }
};

/// By abi::DType.
inline constexpr ElementType kElementTypes[] = {
    {"float32", 'f', 1, 4, 32, 8, 23, 127, Specials::ieee},
    {"float64", 'f', 11, 8, 64, 11, 52, 1023, Specials::ieee},
    {"float16", 'f', 10, 2, 16, 5, 10, 15, Specials::ieee},
    {"bfloat16", 'f', 16, 2, 16, 8, 7, 127, Specials::ieee},
    {"int8", 'i', 3, 1, 8},
    {"int16", 'i', 5, 2, 16},
    {"int32", 'i', 6, 4, 32},
    {"int64", 'i', 7, 8, 64},
    {"uint8", 'u', 2, 1, 8},
    {"uint16", 'u', 4, 2, 16},
    {"uint32", 'u', 12, 4, 32},
    {"uint64", 'u', 13, 8, 64},
    {"bool", 'b', 9, 1, 8},
    {"float8_e4m3fn", 'f', 17, 1, 8, 4, 3, 7, Specials::fn},
    {"float8_e4m3fnuz", 'f', 18, 1, 8, 4, 3, 8, Specials::fnuz},
    {"float8_e5m2", 'f', 19, 1, 8, 5, 2, 15, Specials::ieee},
    {"float8_e5m2fnuz", 'f', 20, 1, 8, 5, 2, 16, Specials::fnuz},
    {"float8_e8m0fnu", 'f', 24, 1, 8, 8, 0, 127, Specials::fn},
    {"float4_e2m1fn", 'f', 23, 1, 4, 2, 1, 1, Specials::none},
    {"int4", 'i', 22, 1, 4},
    {"uint4", 'u', 21, 1, 4},
    {"int2", 'i', 26, 1, 2},
    {"uint2", 'u', 25, 1, 2},
    {"unknown", ' ', 0, 0, 8}, // for what is not in the enumeration
};
static_assert(std::size(kElementTypes) ==
              static_cast<size_t>(abi::DType::MAX) + 2);

inline const ElementType &elementType(abi::DType type) {
  return kElementTypes[std::min(static_cast<size_t>(type),
                                std::size(kElementTypes) - 1)];
}

/// Bytes of one element in memory; 0 if `type` is not in the enumeration.
inline int64_t elementBytes(abi::DType type) { return elementType(type).bytes; }

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

/// An element of a vector of tables, or of structs.
template <typename Vector> const auto &at(const Vector *vector, int64_t i) {
  return *vector->Get(static_cast<flatbuffers::uoffset_t>(i));
}

/// A vector of tables, or of structs, as a range of references.
template <typename Vector> struct ElementRange {
  struct Iterator {
    const Vector *vector;
    int64_t i;
    const auto &operator*() const { return at(vector, i); }
    void operator++() { ++i; }
    bool operator==(const Iterator &other) const { return i == other.i; }
  };
  const Vector *vector;

  Iterator begin() const { return {vector, 0}; }
  Iterator end() const { return {vector, length(vector)}; }
};

/// The elements of such a vector; none if it is absent.
template <typename Vector> ElementRange<Vector> each(const Vector *vector) {
  return {vector};
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

/// A shape of the plan; empty if it is absent.
inline std::vector<int64_t> shapeOf(const flatbuffers::Vector<int64_t> *shape) {
  return shape ? std::vector<int64_t>(shape->begin(), shape->end())
               : std::vector<int64_t>();
}

/// A string of the plan; empty if it is absent.
inline const char *text(const flatbuffers::String *string) {
  return string ? string->c_str() : "";
}

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_BASE_ELEMENTS_H
