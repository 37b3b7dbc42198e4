//===- Integer.cpp - Arithmetic of integers ---------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ops/Lanes.h"
#include "ptx/Forms.h"

#include <algorithm>
#include <limits>
#include <type_traits>

using namespace gpuemu;

namespace {

template <typename T> using Unsigned = std::make_unsigned_t<T>;
template <typename T>
using Wide = std::conditional_t<
    sizeof(T) == 8,
    std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
    std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

constexpr auto add = [](auto a, auto b) {
  using T = decltype(a);
  return T(Unsigned<T>(a) + Unsigned<T>(b));
};
constexpr auto subtract = [](auto a, auto b) {
  using T = decltype(a);
  return T(Unsigned<T>(a) - Unsigned<T>(b));
};
int32_t saturate(int64_t value) {
  return int32_t(std::clamp<int64_t>(value, INT32_MIN, INT32_MAX));
}
constexpr auto addSaturated = [](int32_t a, int32_t b) {
  return saturate(int64_t(a) + b);
};
constexpr auto subtractSaturated = [](int32_t a, int32_t b) {
  return saturate(int64_t(a) - b);
};
constexpr auto multiplyLow = [](auto a, auto b) {
  using T = decltype(a);
  return T(uint64_t(a) * uint64_t(b));
};
constexpr auto multiplyHigh = [](auto a, auto b) {
  using T = decltype(a);
  return T(Wide<T>(a) * Wide<T>(b) >> 8 * sizeof(T));
};
constexpr auto multiplyAddLow = [](auto a, auto b, auto c) {
  using T = decltype(a);
  return T(uint64_t(a) * uint64_t(b) + uint64_t(c));
};
constexpr auto multiplyAddHigh = [](auto a, auto b, auto c) {
  return add(multiplyHigh(a, b), c);
};
constexpr auto multiplyAddHighSaturated = [](int32_t a, int32_t b, int32_t c) {
  return saturate(int64_t(multiplyHigh(a, b)) + c);
};
/// Division by zero gives all ones on NVIDIA's hardware; the manual leaves it
/// open.
constexpr auto divide = [](auto a, auto b) {
  using T = decltype(a);
  if (b == 0)
    return T(-1);
  if (std::is_signed_v<T> && b == T(-1))
    return T(Unsigned<T>(0) - Unsigned<T>(a));
  return T(a / b);
};
constexpr auto remainder_ = [](auto a, auto b) {
  using T = decltype(a);
  if (b == 0)
    return a;
  if (std::is_signed_v<T> && b == T(-1))
    return T(0);
  return T(a % b);
};
constexpr auto minimum = [](auto a, auto b) { return a < b ? a : b; };
constexpr auto maximum = [](auto a, auto b) { return a < b ? b : a; };
constexpr auto negate = [](auto a) {
  using T = decltype(a);
  return T(Unsigned<T>(0) - Unsigned<T>(a));
};
constexpr auto absolute = [](auto a) {
  using T = decltype(a);
  return a < 0 ? T(Unsigned<T>(0) - Unsigned<T>(a)) : a;
};
constexpr auto sumOfDifferences = [](auto a, auto b, auto c) {
  using T = decltype(a);
  return T(Unsigned<T>(c) + (a < b ? Unsigned<T>(b) - Unsigned<T>(a)
                                   : Unsigned<T>(a) - Unsigned<T>(b)));
};

/// Both halves of 32 bits, each by itself.
template <typename T, auto function> uint32_t halves(uint32_t a, uint32_t b) {
  auto low = uint16_t(function(T(a), T(b)));
  auto high = uint16_t(function(T(a >> 16), T(b >> 16)));
  return uint32_t(low) | uint32_t(high) << 16;
}

template <typename T, typename Lane>
void dotOfBytes(Warp &w, const Instruction &x) {
  const uint32_t *a = w.row<uint32_t>(x.a);
  const uint32_t *b = w.row<uint32_t>(x.b);
  const uint32_t *c = w.row<uint32_t>(x.c);
  eachLane<uint32_t>(w, x.d, [=](int n) {
    uint32_t sum = c[n];
    for (int i = 0; i < 32; i += 8)
      sum += uint32_t(T(Lane(a[n] >> i)) * T(Lane(b[n] >> i)));
    return sum;
  });
}

/// Sums with a carry from and to the condition code. `mode`: 1 subtracts, 2
/// takes the carry in, 4 sets it.
template <typename T> void withCarry(Warp &w, const Instruction &x) {
  const T *a = w.row<T>(x.a), *b = w.row<T>(x.b);
  T *d = w.row<T>(x.d);
  GPUEMU_ACTIVE(w.active) {
    unsigned __int128 in = x.mode & 2 ? w.carry >> n & 1 : 0;
    unsigned __int128 result = x.mode & 1
                                   ? (unsigned __int128)(a[n]) - b[n] - in
                                   : (unsigned __int128)(a[n]) + b[n] + in;
    d[n] = T(result);
    if (x.mode & 4)
      w.carry = (w.carry & ~(1u << n)) | uint32_t(result >> 8 * sizeof(T) & 1)
                                             << n;
  }
}
/// mad.cc and madc; `mode` as above, and 8 takes the high half.
template <typename T> void multiplyWithCarry(Warp &w, const Instruction &x) {
  const T *a = w.row<T>(x.a), *b = w.row<T>(x.b), *c = w.row<T>(x.c);
  T *d = w.row<T>(x.d);
  GPUEMU_ACTIVE(w.active) {
    using W = Wide<T>;
    T part =
        T(x.mode & 8 ? W(a[n]) * W(b[n]) >> 8 * sizeof(T) : W(a[n]) * W(b[n]));
    unsigned __int128 sum = Unsigned<T>(part);
    sum += Unsigned<T>(c[n]);
    sum += x.mode & 2 ? w.carry >> n & 1 : 0;
    d[n] = T(sum);
    if (x.mode & 4)
      w.carry = (w.carry & ~(1u << n)) | uint32_t(sum >> 8 * sizeof(T) & 1)
                                             << n;
  }
}

void sources(Operands &o, Type type, size_t count) {
  o.expect(count + 1);
  o.x.d = o.result(0, bytesOf(type));
  o.x.a = o.source(1, type);
  if (count > 1)
    o.x.b = o.source(2, type);
  if (count > 2)
    o.x.c = o.source(3, type);
}

template <auto function> Build binaryOf(size_t typePart) {
  return [typePart](const Match &m, Operands &o) {
    Type type = m.type(typePart);
    sources(o, type, 2);
    withInteger(type, [&](auto zero) {
      using T = decltype(zero);
      o.x.run = binary<T, T, T, function>;
    });
  };
}
template <auto function> Build unaryOf(size_t typePart) {
  return [typePart](const Match &m, Operands &o) {
    Type type = m.type(typePart);
    sources(o, type, 1);
    withInteger(type, [&](auto zero) {
      using T = decltype(zero);
      o.x.run = unary<T, T, function>;
    });
  };
}
template <auto function> Build ternaryOf(size_t typePart) {
  return [typePart](const Match &m, Operands &o) {
    Type type = m.type(typePart);
    sources(o, type, 3);
    withInteger(type, [&](auto zero) {
      using T = decltype(zero);
      o.x.run = ternary<T, T, T, T, function>;
    });
  };
}
template <auto function> Build halvesOf() {
  return [](const Match &m, Operands &o) {
    sources(o, Type::U16x2, 2);
    o.x.run =
        m.type(m[0] == "relu" ? 1 : 0) == Type::S16x2
            ? binary<uint32_t, uint32_t, uint32_t, halves<int16_t, function>>
            : binary<uint32_t, uint32_t, uint32_t, halves<uint16_t, function>>;
  };
}

/// d is twice as wide as a and b.
template <bool adds> Build wideOf() {
  return [](const Match &m, Operands &o) {
    o.expect(adds ? 4 : 3);
    Type type = m.type(1);
    bool isSigned = type == Type::S16 || type == Type::S32;
    Type wide = bytesOf(type) == 2 ? isSigned ? Type::S32 : Type::U32
                : isSigned         ? Type::S64
                                   : Type::U64;
    o.x.d = o.result(0, bytesOf(wide));
    o.x.a = o.source(1, type);
    o.x.b = o.source(2, type);
    if (adds)
      o.x.c = o.source(3, wide);
    withInteger(type, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (sizeof(T) == 2 || sizeof(T) == 4) {
        using D = std::conditional_t<
            sizeof(T) == 2,
            std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
            std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
        if constexpr (adds)
          o.x.run = ternary<D, T, T, D, [](T a, T b, D c) {
            return D(Unsigned<D>(D(a) * D(b)) + Unsigned<D>(c));
          }>;
        else
          o.x.run = binary<D, T, T, [](T a, T b) { return D(a) * D(b); }>;
      }
    });
  };
}

Build carryOf(uint8_t mode) {
  return [mode](const Match &m, Operands &o) {
    Type type = m.type(1);
    sources(o, type, 2);
    o.x.mode = uint8_t(mode | (m.has("cc") ? 4 : 0));
    o.x.run = bytesOf(type) == 8 ? withCarry<uint64_t> : withCarry<uint32_t>;
  };
}
void multiplyCarry(const Match &m, Operands &o, uint8_t mode) {
  Type type = m.type(2);
  sources(o, type, 3);
  o.x.mode = uint8_t(mode | (m.has("cc") ? 4 : 0) | (m.has("hi") ? 8 : 0));
  withInteger(type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (sizeof(T) >= 4)
      o.x.run = multiplyWithCarry<T>;
  });
}

} // namespace

void gpuemu::addIntegerForms(FormTable &t) {
  t.add("add.(u16|u32|u64|s16|s32|s64)", binaryOf<add>(0));
  t.add("add.sat.s32", binaryOf<addSaturated>(1));
  t.add("add.(u16x2|s16x2)", halvesOf<add>());
  t.add("sub.(u16|u32|u64|s16|s32|s64)", binaryOf<subtract>(0));
  t.add("sub.sat.s32", binaryOf<subtractSaturated>(1));
  t.add("mul.lo.(u16|u32|u64|s16|s32|s64)", binaryOf<multiplyLow>(1));
  t.add("mul.hi.(u16|u32|u64|s16|s32|s64)", binaryOf<multiplyHigh>(1));
  t.add("mul.wide.(u16|u32|s16|s32)", wideOf<false>());
  t.add("mad.lo.(u16|u32|u64|s16|s32|s64)", ternaryOf<multiplyAddLow>(1));
  t.add("mad.hi.(u16|u32|u64|s16|s32|s64)", ternaryOf<multiplyAddHigh>(1));
  t.add("mad.hi.sat.s32", ternaryOf<multiplyAddHighSaturated>(2));
  t.add("mad.wide.(u16|u32|s16|s32)", wideOf<true>());
  t.add("div.(u16|u32|u64|s16|s32|s64)", binaryOf<divide>(0));
  t.add("rem.(u16|u32|u64|s16|s32|s64)", binaryOf<remainder_>(0));
  t.add("min.(u16|u32|u64|s16|s32|s64)", binaryOf<minimum>(0));
  t.add("max.(u16|u32|u64|s16|s32|s64)", binaryOf<maximum>(0));
  constexpr auto minimumNotNegative = [](auto a, auto b) {
    return maximum(minimum(a, b), decltype(a)(0));
  };
  constexpr auto maximumNotNegative = [](auto a, auto b) {
    return maximum(maximum(a, b), decltype(a)(0));
  };
  t.add("min.relu.s32", binaryOf<minimumNotNegative>(1));
  t.add("max.relu.s32", binaryOf<maximumNotNegative>(1));
  t.add("min.(u16x2|s16x2)", halvesOf<minimum>());
  t.add("max.(u16x2|s16x2)", halvesOf<maximum>());
  t.add("min.relu.s16x2", halvesOf<minimumNotNegative>());
  t.add("max.relu.s16x2", halvesOf<maximumNotNegative>());
  t.add("neg.(s16|s32|s64)", unaryOf<negate>(0));
  t.add("abs.(s16|s32|s64)", unaryOf<absolute>(0));
  t.add("sad.(u16|u32|u64|s16|s32|s64)", ternaryOf<sumOfDifferences>(0));
  t.add("add.cc.(u32|s32|u64|s64)", carryOf(0));
  t.add("addc.[cc].(u32|s32|u64|s64)", carryOf(2));
  t.add("sub.cc.(u32|s32|u64|s64)", carryOf(1));
  t.add("subc.[cc].(u32|s32|u64|s64)", carryOf(3));
  t.add("mad.(lo|hi).cc.(u32|s32|u64|s64)", [](const Match &m, Operands &o) {
    // The type is the third part, as in madc.
    multiplyCarry(m, o, 0);
  });
  t.add("madc.(lo|hi).[cc].(u32|s32|u64|s64)",
        [](const Match &m, Operands &o) { multiplyCarry(m, o, 2); });
  t.add("dp4a.(u32|s32).(u32|s32)", [](const Match &m, Operands &o) {
    sources(o, Type::U32, 3);
    bool left = m.type(0) == Type::S32, right = m.type(1) == Type::S32;
    if (left != right)
      o.fail("the emulator knows dp4a with two types that are alike");
    o.x.run =
        left ? dotOfBytes<int32_t, int8_t> : dotOfBytes<uint32_t, uint8_t>;
  });
}
