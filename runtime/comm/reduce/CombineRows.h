//===- CombineRows.h - Elements of several devices, combined ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_REDUCE_COMBINEROWS_H
#define PARTITA_RUNTIME_COMM_REDUCE_COMBINEROWS_H

#include <cstdint>

namespace partita::runtime {

/// Arrays of `count` elements, to be combined. Elements with the same index are
/// combined as Collective.h says, and the result is written to all targets. A
/// target may be one of the sources.
struct Combination {
  const uint8_t *const *from = nullptr;
  int sources = 0; ///< at least 1
  uint8_t *const *to = nullptr;
  int targets = 0;
  int64_t count = 0; ///< elements
};

using CombineFunction = void (*)(const Combination &);

/// The functions of one element type; null for reductions that it does not
/// have.
struct CombineFunctions {
  CombineFunction sum = nullptr, prod = nullptr, max = nullptr, min = nullptr;
};

/// How elements are stored and computed: the name of their type, and a format
/// of CombineRows.cpp. Of i4, u4, i2 and u2, a byte has one element.
#define PARTITA_ELEMENT_FORMATS(X)                                             \
  X(f32, Plain<float>)                                                         \
  X(f64, Plain<double>)                                                        \
  X(f16, Half)                                                                 \
  X(bf16, Brain)                                                               \
  X(i8, Plain<int8_t>)                                                         \
  X(i16, Plain<int16_t>)                                                       \
  X(i32, Plain<int32_t>)                                                       \
  X(i64, Plain<int64_t>)                                                       \
  X(u8, Plain<uint8_t>)                                                        \
  X(u16, Plain<uint16_t>)                                                      \
  X(u32, Plain<uint32_t>)                                                      \
  X(u64, Plain<uint64_t>)                                                      \
  X(boolean, Boolean)                                                          \
  X(i4, Narrow<int8_t, 4>)                                                     \
  X(u4, Narrow<uint8_t, 4>)                                                    \
  X(i2, Narrow<int8_t, 2>)                                                     \
  X(u2, Narrow<uint8_t, 2>)

enum class ElementFormat : uint8_t {
#define PARTITA_NAME(name, ...) name,
  PARTITA_ELEMENT_FORMATS(PARTITA_NAME)
#undef PARTITA_NAME
};

CombineFunctions combineFunctionsBaseline(ElementFormat format);
CombineFunctions combineFunctionsV3(ElementFormat format);
CombineFunctions combineFunctionsV4(ElementFormat format);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_COMM_REDUCE_COMBINEROWS_H
