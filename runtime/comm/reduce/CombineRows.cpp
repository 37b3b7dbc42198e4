//===- CombineRows.cpp - Elements of several devices, combined ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled once for each instruction-set level, as LevelName.h says. All
// elements go through loops of one constant length, the last ones in a padded
// copy: so an element's bits do not depend on where it lies.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/reduce/CombineRows.h"

#include "runtime/base/LevelName.h"
#include "runtime/base/SmallFloats.h"

#include <stddef.h>

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace partita::runtime {
namespace {

/// Elements of a block.
constexpr int kBlock = 128;

/// Elements that are computed with as they lie.
template <typename T> struct Plain {
  using Stored = T;
  using Held = T;
  static void load(const T *from, T *to) {
    for (int i = 0; i < kBlock; ++i)
      to[i] = from[i];
  }
  static void store(const T *from, T *to) { load(from, to); }
};

/// It has no sums and products.
struct Boolean : Plain<uint8_t> {};

struct Half {
  using Stored = uint16_t;
  using Held = float;
  static void load(const uint16_t *from, float *to) {
    widenHalfs(from, to, kBlock);
  }
  static void store(const float *from, uint16_t *to) {
    narrowHalfs(from, to, kBlock);
  }
};

struct Brain {
  using Stored = uint16_t;
  using Held = float;
  static void load(const uint16_t *from, float *to) {
    widenBrains(from, to, kBlock);
  }
  static void store(const float *from, uint16_t *to) {
    narrowBrains(from, to, kBlock);
  }
};

/// Integers of fewer bits than their byte has.
template <typename T, int kBits> struct Narrow : Plain<T> {
  static void store(const T *from, T *to) {
    constexpr int kRest = 8 - kBits;
    for (int i = 0; i < kBlock; ++i)
      to[i] = T(T(unsigned(from[i]) << kRest) >> kRest);
  }
};

/// What a sum or a product is computed in: integers wrap around, so without
/// sign, and in at least 32 bits.
template <typename T, int kBytes = sizeof(T)> struct Wide {
  using Type = uint32_t;
};
template <typename T> struct Wide<T, 8> {
  using Type = uint64_t;
};
template <> struct Wide<float> {
  using Type = float;
};
template <> struct Wide<double, 8> {
  using Type = double;
};

struct Sum {
  template <typename T> static T of(T a, T b) {
    using Type = typename Wide<T>::Type;
    return T(Type(a) + Type(b));
  }
};
struct Prod {
  template <typename T> static T of(T a, T b) {
    using Type = typename Wide<T>::Type;
    return T(Type(a) * Type(b));
  }
};
/// Numbers of which a larger float has the larger one; -0 is less than 0.
inline int32_t orderOf(float value) {
  const auto bits = __builtin_bit_cast(int32_t, value);
  return bits ^ (bits >> 31 & 0x7fffffff);
}
inline int64_t orderOf(double value) {
  const auto bits = __builtin_bit_cast(int64_t, value);
  return bits ^ (bits >> 63 & 0x7fffffffffffffff);
}
template <typename T> T orderOf(T value) { return value; }

// Floats are compared as integers: a comparison of NaN would raise the
// processor's flag for invalid operations, which says that a device has dropped
// NaN. Whether one is equal to itself does not.
struct Max {
  template <typename T> static T of(T a, T b) {
    return (a != a) | ((b == b) & (orderOf(a) > orderOf(b))) ? a : b;
  }
};
struct Min {
  template <typename T> static T of(T a, T b) {
    return (a != a) | ((b == b) & (orderOf(a) < orderOf(b))) ? a : b;
  }
};

/// `count` elements, of which a whole block is copied in a loop of constant
/// length.
template <typename T> void copyElements(const T *from, T *to, int count) {
  if (count == kBlock)
    Plain<T>::load(from, to);
  else
    __builtin_memcpy(to, from, size_t(count) * sizeof(T));
}

#ifdef __SSE2__
/// Targets of so many bytes do not fit the caches beside the sources.
constexpr int64_t kStreamedBytes = 4 << 20;

/// Writes a whole block past the caches. Otherwise each line of the target
/// would be read from memory, only to be overwritten.
void streamBlock(const void *from, void *to, size_t bytes) {
  auto source = static_cast<const __m128i *>(from);
  auto target = static_cast<__m128i *>(to);
  for (size_t i = 0; i < bytes / sizeof(__m128i); ++i)
    _mm_stream_si128(target + i, _mm_loadu_si128(source + i));
}

/// Whether it is worth writing a target past the caches. A target that is a
/// source is in them.
bool isStreamed(const Combination &all, size_t element_bytes, int target) {
  const uint8_t *to = all.to[target];
  if (all.count * int64_t(element_bytes) < kStreamedBytes ||
      reinterpret_cast<uintptr_t>(to) % sizeof(__m128i) != 0)
    return false;
  for (int s = 0; s < all.sources; ++s)
    if (all.from[s] == to)
      return false;
  return true;
}

/// What was written past the caches is there for others from here on.
void endStream() { _mm_sfence(); }
#else
void streamBlock(const void *, void *, size_t) {}
bool isStreamed(const Combination &, size_t, int) { return false; }
void endStream() {}
#endif

/// The elements of one source from `at` on.
template <typename Format>
void loadBlock(const Combination &all, int source, int64_t at, int count,
               typename Format::Held *to) {
  using Stored = typename Format::Stored;
  const Stored *from = reinterpret_cast<const Stored *>(all.from[source]) + at;
  if (count == kBlock) {
    Format::load(from, to);
    return;
  }
  Stored padded[kBlock] = {};
  copyElements(from, padded, count);
  Format::load(padded, to);
}

/// The sources `first`, `first` + `stride`, ..., of a power of two of them.
template <typename Format, typename Operation>
void combineTree(const Combination &all, int first, int stride, int64_t at,
                 int count, typename Format::Held *to) {
  if (first + stride >= all.sources) {
    loadBlock<Format>(all, first, at, count, to);
    return;
  }
  typename Format::Held other[kBlock];
  combineTree<Format, Operation>(all, first, 2 * stride, at, count, to);
  combineTree<Format, Operation>(all, first + stride, 2 * stride, at, count,
                                 other);
  for (int i = 0; i < kBlock; ++i)
    to[i] = Operation::of(to[i], other[i]);
}

template <typename Format, typename Operation>
void combineBlock(const Combination &all, int64_t at, int count,
                  typename Format::Held *to) {
  if ((all.sources & (all.sources - 1)) == 0) {
    combineTree<Format, Operation>(all, 0, 1, at, count, to);
    return;
  }
  loadBlock<Format>(all, 0, at, count, to);
  typename Format::Held other[kBlock];
  for (int s = 1; s < all.sources; ++s) {
    loadBlock<Format>(all, s, at, count, other);
    for (int i = 0; i < kBlock; ++i)
      to[i] = Operation::of(to[i], other[i]);
  }
}

template <typename Format, typename Operation>
void combine(const Combination &all) {
  using Stored = typename Format::Stored;
  using Held = typename Format::Held;
  bool streamed = all.targets > 0;
  for (int t = 0; t < all.targets; ++t)
    streamed &= isStreamed(all, sizeof(Stored), t);
  Stored result[kBlock];
  Held held[kBlock];
  for (int64_t at = 0; at < all.count; at += kBlock) {
    const int count = all.count - at < kBlock ? int(all.count - at) : kBlock;
    combineBlock<Format, Operation>(all, at, count, held);
    Format::store(held, result);
    for (int t = 0; t < all.targets; ++t) {
      Stored *to = reinterpret_cast<Stored *>(all.to[t]) + at;
      if (streamed && count == kBlock)
        streamBlock(result, to, sizeof(result));
      else
        copyElements(result, to, count);
    }
  }
  if (streamed)
    endStream();
}

template <typename Format> CombineFunctions functionsOf() {
  return {combine<Format, Sum>, combine<Format, Prod>, combine<Format, Max>,
          combine<Format, Min>};
}
template <> CombineFunctions functionsOf<Boolean>() {
  return {nullptr, nullptr, combine<Boolean, Max>, combine<Boolean, Min>};
}

} // namespace

CombineFunctions PARTITA_LEVEL(combineFunctions)(ElementFormat format) {
  switch (format) {
#define PARTITA_CASE(name, ...)                                                \
  case ElementFormat::name:                                                    \
    return functionsOf<__VA_ARGS__>();
    PARTITA_ELEMENT_FORMATS(PARTITA_CASE)
#undef PARTITA_CASE
  }
  return {};
}

} // namespace partita::runtime
