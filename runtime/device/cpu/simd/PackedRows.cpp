//===- PackedRows.cpp - Weights of few bits, vectorised by hand -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled once for each instruction-set level; see Lanes.h.
//
// A vector of `width` bytes has 8 / bits vectors of numbers: those in the
// lowest bits of each byte, those in the next ones, and so on. They are not
// neighbours in a row, so what is multiplied by them is arranged in the same
// order first.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/simd/PackedRows.h"

#include "runtime/device/cpu/simd/Lanes.h"

#include <immintrin.h>
#include <utility>

namespace partita::runtime {
namespace {

template <int width> struct Vectors {
  typedef int32_t Words __attribute__((vector_size(width * 4)));
  typedef float Numbers __attribute__((vector_size(width * 4)));
};

template <typename Vector, typename Element>
inline Vector read(const Element *data) {
  Vector value;
  __builtin_memcpy(&value, data, sizeof(value));
  return value;
}

/// Bytes as words. Compilers convert vectors of bytes one by one.
template <int width>
inline typename Vectors<width>::Words widen(const uint8_t *data) {
  using Words = typename Vectors<width>::Words;
#if PARTITA_LANES >= 16
  if constexpr (width == 16)
    return Words(_mm512_maskz_cvtepu8_epi32(0xffff, read<__m128i>(data)));
#endif
#if PARTITA_LANES >= 8
  if constexpr (width == 8)
    return Words(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(read<int64_t>(data))));
#endif
  if constexpr (width == 4) {
    const __m128i zero = _mm_setzero_si128(),
                  bytes = _mm_cvtsi32_si128(read<int32_t>(data));
    return Words(_mm_unpacklo_epi16(_mm_unpacklo_epi8(bytes, zero), zero));
  }
}

/// The elements of two vectors in turn: the vector with the first ones, or the
/// other one.
template <int width, int first, int... i>
inline typename Vectors<width>::Numbers
alternate(typename Vectors<width>::Numbers a,
          typename Vectors<width>::Numbers b,
          std::integer_sequence<int, i...>) {
  return __builtin_shufflevector(a, b,
                                 ((first + i) / 2 + (i % 2 ? width : 0))...);
}

/// Rows become columns: after each round, a vector has the elements of twice as
/// many rows in turn.
template <int width>
inline void transpose(typename Vectors<width>::Numbers (&rows)[width]) {
  using Numbers = typename Vectors<width>::Numbers;
  constexpr auto all = std::make_integer_sequence<int, width>();
  for (int round = 1; round < width; round *= 2) {
    Numbers mixed[width];
#pragma GCC unroll 8
    for (int i = 0; i < width / 2; ++i) {
      const Numbers a = rows[i], b = rows[i + width / 2];
      mixed[2 * i] = alternate<width, 0>(a, b, all);
      mixed[2 * i + 1] = alternate<width, width>(a, b, all);
    }
    __builtin_memcpy(rows, mixed, sizeof(rows));
  }
}

/// Calls `multiply<count>` for the number of vectors.
template <typename Rows> void multiplyVectors(const PackedProduct &product) {
  switch (product.count) {
  case 1:
    return Rows::template multiplyRows<1>(product);
  case 2:
    return Rows::template multiplyRows<2>(product);
  case 3:
    return Rows::template multiplyRows<3>(product);
  default:
    return Rows::template multiplyRows<kFewVectors>(product);
  }
}

/// Weights that are floats.
struct FloatRows {
  static int64_t lengthOf(const PackedRows &weights) {
    return weights.bytes / static_cast<int64_t>(sizeof(float));
  }
  static const float *rowOf(const PackedRows &weights, int64_t row) {
    return reinterpret_cast<const float *>(weights.numbers +
                                           row * weights.bytes);
  }

  static void arrange(const PackedRows &, const float *vector, int64_t length,
                      float *to) {
    __builtin_memcpy(to, vector, static_cast<size_t>(length) * sizeof(float));
  }

  template <int count>
  static void multiplyRow(const PackedProduct &product, int64_t row) {
    const int64_t length = lengthOf(product.weights);
    const float *weights = rowOf(product.weights, row);
    Floats sums[count][2] = {};
    int64_t i = 0;
    for (; i + 2 * kLanes <= length; i += 2 * kLanes)
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const int64_t at = i + half * kLanes;
        const Floats weight = load(weights + at);
#pragma GCC unroll 4
        for (int k = 0; k < count; ++k)
          sums[k][half] += weight * load(product.vectors + k * length + at);
      }
    for (int k = 0; k < count; ++k) {
      const Floats all = sums[k][0] + sums[k][1];
      float sum = 0;
      for (int lane = 0; lane < kLanes; ++lane)
        sum += all[lane];
      for (int64_t rest = i; rest < length; ++rest)
        sum += weights[rest] * product.vectors[k * length + rest];
      product.result[k * product.step + row] = sum;
    }
  }

  template <int count> static void multiplyRows(const PackedProduct &product) {
    for (int64_t row = product.begin; row < product.end; ++row)
      multiplyRow<count>(product, row);
  }

  static void multiply(const PackedProduct &product) {
    multiplyVectors<FloatRows>(product);
  }

  static void unpack(const PackedRows &weights, int64_t begin, int64_t end,
                     float *to, int64_t step) {
    const int64_t length = lengthOf(weights);
    for (int64_t first = begin; first < end; first += kLanes, to += kLanes) {
      // Past the end it is the last row again.
      const float *rows[kLanes];
      for (int64_t i = 0; i < kLanes; ++i)
        rows[i] = rowOf(weights, first + i < end ? first + i : end - 1);
      int64_t at = 0;
      for (; at + kLanes <= length; at += kLanes) {
        Vectors<kLanes>::Numbers columns[kLanes];
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i)
          columns[i] = read<Vectors<kLanes>::Numbers>(rows[i] + at);
        transpose<kLanes>(columns);
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i)
          __builtin_memcpy(to + (at + i) * step, &columns[i],
                           sizeof(columns[i]));
      }
      for (; at < length; ++at)
        for (int64_t i = 0; i < kLanes; ++i)
          to[at * step + i] = rows[i][at];
    }
  }

  static constexpr PackedFunctions kFunctions = {arrange, multiply, unpack};
};

/// Weights of `bits` bits in vectors of `width` bytes.
template <int bits, int width> struct Packed {
  using Words = typename Vectors<width>::Words;
  using Numbers = typename Vectors<width>::Numbers;
  static constexpr int kParts = 8 / bits;

  static Numbers partOf(Words bytes, int part) {
    Words numbers = bytes >> (part * bits);
    if (part + 1 < kParts)
      numbers &= (1 << bits) - 1;
    return __builtin_convertvector(numbers, Numbers);
  }

  static float zeroOf(const PackedRows &weights, int64_t block) {
    return weights.zeros ? weights.zeros[block] : float(1 << (bits - 1));
  }

  static void arrange(const PackedRows &weights, const float *vector,
                      int64_t length, float *to) {
    const int64_t all = weights.blocks * weights.bytes * kParts;
    constexpr int64_t kGroup = width * kParts;
    for (int64_t group = 0; group < all; group += kGroup)
      for (int64_t part = 0; part < kParts; ++part)
        for (int64_t lane = 0; lane < width; ++lane) {
          const int64_t from = group + lane * kParts + part;
          *to++ = from < length ? vector[from] : 0;
        }
  }

  template <int count>
  static void multiplyRow(const PackedProduct &product, int64_t row) {
    const PackedRows &weights = product.weights;
    const int64_t length = weights.blocks * weights.bytes * kParts;
    const uint8_t *numbers =
        weights.numbers + row * weights.blocks * weights.bytes;
    const float *vectors = product.vectors;
    Numbers sums[count] = {};
    for (int64_t i = 0; i < weights.blocks; ++i) {
      const int64_t block = row * weights.blocks + i;
      const float zero = zeroOf(weights, block);
      Numbers ofBlock[count] = {};
      for (int64_t at = 0; at < weights.bytes; at += width) {
        const Words bytes = widen<width>(numbers);
        numbers += width;
#pragma GCC unroll 4
        for (int part = 0; part < kParts; ++part) {
          const Numbers weight = partOf(bytes, part) - zero;
#pragma GCC unroll 4
          for (int k = 0; k < count; ++k)
            ofBlock[k] += weight * read<Numbers>(vectors + k * length);
          vectors += width;
        }
      }
#pragma GCC unroll 4
      for (int k = 0; k < count; ++k)
        sums[k] += ofBlock[k] * weights.scales[block];
    }
    for (int k = 0; k < count; ++k) {
      float sum = 0;
      for (int lane = 0; lane < width; ++lane)
        sum += sums[k][lane];
      product.result[k * product.step + row] = sum;
    }
  }

  template <int count> static void multiplyRows(const PackedProduct &product) {
    for (int64_t row = product.begin; row < product.end; ++row)
      multiplyRow<count>(product, row);
  }

  static void multiply(const PackedProduct &product) {
    multiplyVectors<Packed>(product);
  }

  static void unpack(const PackedRows &weights, int64_t begin, int64_t end,
                     float *to, int64_t step) {
    const int64_t rowBytes = weights.blocks * weights.bytes;
    for (int64_t first = begin; first < end; first += width, to += width) {
      // Past the end it is the last row again.
      int64_t rows[width];
      for (int64_t i = 0; i < width; ++i)
        rows[i] = first + i < end ? first + i : end - 1;
      float *column = to;
      for (int64_t block = 0; block < weights.blocks; ++block) {
        float zeros[width], scales[width];
        for (int i = 0; i < width; ++i) {
          const int64_t of = rows[i] * weights.blocks + block;
          zeros[i] = zeroOf(weights, of);
          scales[i] = weights.scales[of];
        }
        for (int64_t at = 0; at < weights.bytes; at += width) {
          const int64_t offset = block * weights.bytes + at;
          for (int part = 0; part < kParts; ++part) {
            Numbers columns[width];
#pragma GCC unroll 16
            for (int i = 0; i < width; ++i)
              columns[i] = partOf(
                  widen<width>(weights.numbers + rows[i] * rowBytes + offset),
                  part);
            transpose<width>(columns);
            const Numbers zero = read<Numbers>(zeros),
                          scale = read<Numbers>(scales);
#pragma GCC unroll 16
            for (int i = 0; i < width; ++i) {
              const Numbers weight = (columns[i] - zero) * scale;
              __builtin_memcpy(column + (i * kParts + part) * step, &weight,
                               sizeof(weight));
            }
          }
          column += width * kParts * step;
        }
      }
    }
  }
};

/// In vectors that are as wide as possible, and divide a block.
template <int bits> struct AnyWidth {
  template <typename Function>
  static void choose(int64_t bytes, Function function) {
    if constexpr (kLanes >= 16)
      if (bytes >= 16)
        return function(Packed<bits, 16>());
    if constexpr (kLanes >= 8)
      if (bytes >= 8)
        return function(Packed<bits, 8>());
    function(Packed<bits, 4>());
  }

  static void arrange(const PackedRows &weights, const float *vector,
                      int64_t length, float *to) {
    choose(weights.bytes,
           [&](auto packed) { packed.arrange(weights, vector, length, to); });
  }
  static void multiply(const PackedProduct &product) {
    choose(product.weights.bytes,
           [&](auto packed) { packed.multiply(product); });
  }
  static void unpack(const PackedRows &weights, int64_t begin, int64_t end,
                     float *to, int64_t step) {
    choose(weights.bytes,
           [&](auto packed) { packed.unpack(weights, begin, end, to, step); });
  }

  static constexpr PackedFunctions kFunctions = {arrange, multiply, unpack};
};

} // namespace

PackedFunctions PARTITA_LEVEL(packedFunctions)(int64_t bits) {
  return bits == 2    ? AnyWidth<2>::kFunctions
         : bits == 4  ? AnyWidth<4>::kFunctions
         : bits == 32 ? FloatRows::kFunctions
                      : AnyWidth<8>::kFunctions;
}

} // namespace partita::runtime
