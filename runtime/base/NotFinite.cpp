//===- NotFinite.cpp - Elements that are not numbers ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/NotFinite.h"

#include "runtime/base/Elements.h"

#include <algorithm>
#include <cstring>

namespace partita::runtime {
namespace {

/// The first element that is searched, by its bits without the sign: infinity
/// lies just below NaN, in a format that has it.
template <typename Bits>
std::optional<int64_t> findIn(Search search, Bits infinity, const uint8_t *data,
                              int64_t count) {
  const auto most =
      static_cast<Bits>(infinity - (search == Search::not_finite));
  constexpr Bits kMagnitude = static_cast<Bits>(Bits(~Bits(0)) >> 1);
  auto difference = [&](int64_t i) {
    Bits bits;
    std::memcpy(&bits, data + i * static_cast<int64_t>(sizeof bits),
                sizeof bits);
    // The highest bit is set if the element is above `most`.
    return static_cast<Bits>(most - (bits & kMagnitude));
  };
  // A block without any is passed by a loop of fixed length, of which compilers
  // make vectors.
  constexpr int64_t kBlock = 1024;
  int64_t begin = 0;
  for (; begin + kBlock <= count; begin += kBlock) {
    Bits all = 0;
    for (int64_t i = 0; i < kBlock; ++i)
      all |= difference(begin + i);
    if (all > kMagnitude)
      break;
  }
  for (int64_t i = begin; i < count; ++i)
    if (difference(i) > kMagnitude)
      return i;
  return std::nullopt;
}

} // namespace

bool hasNan(abi::DType type) {
  return elementType(type).specials != Specials::none;
}

std::optional<int64_t> findFirst(Search search, abi::DType type,
                                 const uint8_t *data, int64_t count) {
  if (search == Search::none)
    return std::nullopt;
  auto findByte = [&](uint8_t nan) -> std::optional<int64_t> {
    const void *found =
        count ? std::memchr(data, nan, static_cast<size_t>(count)) : nullptr;
    if (!found)
      return std::nullopt;
    return static_cast<const uint8_t *>(found) - data;
  };
  switch (type) {
  case abi::DType::f64:
    return findIn<uint64_t>(search, 0x7FF0000000000000, data, count);
  case abi::DType::f32:
    return findIn<uint32_t>(search, 0x7F800000, data, count);
  case abi::DType::f16:
    return findIn<uint16_t>(search, 0x7C00, data, count);
  case abi::DType::bf16:
    return findIn<uint16_t>(search, 0x7F80, data, count);
  case abi::DType::f8e5m2:
    return findIn<uint8_t>(search, 0x7C, data, count);
  case abi::DType::f8e4m3fn: // without infinities
    return findIn<uint8_t>(Search::nan, 0x7E, data, count);
  case abi::DType::f8e4m3fnuz:
  case abi::DType::f8e5m2fnuz:
    return findByte(0x80);
  case abi::DType::f8e8m0:
    return findByte(0xFF);
  default:
    return std::nullopt;
  }
}

} // namespace partita::runtime
