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
/// combined as Collective.h says, and the result is written to all targets. A target may be one of the sources.
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

/// How elements are stored and computed.
enum class ElementFormat : uint8_t {
  f32,
  f64,
  f16,
  bf16,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  boolean,
  i4,
  u4,
  i2,
  u2 // i4, u4, i2 and u2: one element per byte
};

CombineFunctions combineFunctionsBaseline(ElementFormat format);
CombineFunctions combineFunctionsV3(ElementFormat format);
CombineFunctions combineFunctionsV4(ElementFormat format);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_COMM_REDUCE_COMBINEROWS_H
