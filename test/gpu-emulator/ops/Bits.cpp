//===- Bits.cpp - Logic, shifts and fields of bits --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ops/Lanes.h"
#include "ptx/Forms.h"

#include <algorithm>
#include <bit>
#include <type_traits>

using namespace gpuemu;

namespace {

constexpr auto bitAnd = [](auto a, auto b) { return a & b; };
constexpr auto bitOr = [](auto a, auto b) { return a | b; };
constexpr auto bitXor = [](auto a, auto b) { return a ^ b; };
constexpr auto bitNot = [](auto a) { return ~a; };
constexpr auto logicalNot = [](auto a) { return a == 0; };
constexpr auto shiftLeft = [](auto a, uint32_t by) {
  using T = decltype(a);
  return by >= 8 * sizeof(T) ? T(0) : T(uint64_t(a) << by);
};
constexpr auto shiftRight = [](auto a, uint32_t by) {
  using T = decltype(a);
  constexpr uint32_t most = 8 * sizeof(T) - 1;
  if (std::is_signed_v<T>)
    return T(a >> std::min(by, most));
  return by > most ? T(0) : T(a >> by);
};
constexpr auto countOnes = [](auto a) {
  return std::popcount(std::make_unsigned_t<decltype(a)>(a));
};
constexpr auto countLeadingZeros = [](auto a) {
  return std::countl_zero(std::make_unsigned_t<decltype(a)>(a));
};
constexpr auto reverse = [](auto a) {
  decltype(a) result = 0;
  for (size_t i = 0; i < 8 * sizeof a; ++i)
    result |= (a >> i & 1) << (8 * sizeof a - 1 - i);
  return result;
};
/// The highest bit that differs from the sign.
constexpr auto findHighest = [](auto a) {
  using T = std::make_unsigned_t<decltype(a)>;
  T bits = a < 0 ? T(~a) : T(a);
  return bits == 0
             ? ~uint32_t(0)
             : uint32_t(8 * sizeof a - 1) - uint32_t(std::countl_zero(bits));
};
constexpr auto findHighestShift = [](auto a) {
  uint32_t found = findHighest(a);
  return found == ~uint32_t(0) ? found : uint32_t(8 * sizeof a - 1) - found;
};
constexpr auto extract = [](auto a, uint32_t position, uint32_t length) {
  using T = decltype(a);
  using U = std::make_unsigned_t<T>;
  constexpr uint32_t most = 8 * sizeof(T) - 1;
  position &= 255;
  length &= 255;
  U sign = 0;
  if (std::is_signed_v<T> && length != 0)
    sign = U(a) >> std::min(position + length - 1, most) & 1;
  U result = position > most ? 0 : U(a) >> position;
  if (length > most)
    length = most + 1;
  // Bits from outside of `a` are the sign.
  uint32_t valid = position > most ? 0 : std::min(length, most + 1 - position);
  U keep = valid > most ? ~U(0) : (U(1) << valid) - 1;
  return T((result & keep) | (sign ? ~keep : U(0)));
};
constexpr auto insert = [](auto a, auto b, uint32_t position, uint32_t length) {
  using T = decltype(a);
  constexpr uint32_t bits = 8 * sizeof(T);
  position &= 255;
  length &= 255;
  if (position >= bits || length == 0)
    return b;
  T field = length >= bits ? ~T(0) : (T(1) << length) - 1;
  return T((b & ~T(field << position)) | T(a & field) << position);
};
constexpr auto funnelWrap = [](uint32_t a, uint32_t b, uint32_t by) {
  return uint32_t((uint64_t(b) << 32 | a) << (by & 31) >> 32);
};
constexpr auto funnelClamp = [](uint32_t a, uint32_t b, uint32_t by) {
  uint64_t both = uint64_t(b) << 32 | a;
  return by >= 32 ? a : uint32_t(both << by >> 32);
};
constexpr auto funnelRightWrap = [](uint32_t a, uint32_t b, uint32_t by) {
  return uint32_t((uint64_t(b) << 32 | a) >> (by & 31));
};
constexpr auto funnelRightClamp = [](uint32_t a, uint32_t b, uint32_t by) {
  return uint32_t((uint64_t(b) << 32 | a) >> std::min(by, 32u));
};
constexpr auto permute = [](uint32_t a, uint32_t b, uint32_t selectors) {
  uint64_t both = uint64_t(b) << 32 | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    uint32_t selector = selectors >> 4 * i & 15;
    auto byte = uint8_t(both >> 8 * (selector & 7));
    if (selector & 8)
      byte = byte & 128 ? 255 : 0;
    result |= uint32_t(byte) << 8 * i;
  }
  return result;
};
/// The selectors of the modes f4e, b4e, rc8, ecl, ecr and rc16.
constexpr auto permuteMode = [](std::string_view mode, uint32_t c) {
  c &= 3;
  uint32_t bytes[4];
  for (uint32_t i = 0; i < 4; ++i)
    bytes[i] = mode == "f4e"   ? (c + i) & 7
               : mode == "b4e" ? (c - i) & 7
               : mode == "rc8" ? c
               : mode == "ecl" ? std::max(i, c)
               : mode == "ecr" ? std::min(i, c)
                               : (c & 1) * 2 + (i & 1);
  return bytes[0] | bytes[1] << 4 | bytes[2] << 8 | bytes[3] << 12;
};

void select(Operands &o, Type type, size_t count) {
  o.expect(count + 1);
  o.x.d = o.result(0, bytesOf(type));
  o.x.a = o.source(1, type);
  if (count > 1)
    o.x.b = o.source(2, type);
}

template <auto function> void logic(const Match &m, Operands &o) {
  Type type = m.type(0);
  select(o, type, 2);
  withInteger(type, [&](auto zero) {
    using T = decltype(zero);
    o.x.run = binary<T, T, T, function>;
  });
}
template <auto function> void inversion(const Match &m, Operands &o) {
  Type type = m.type(0);
  select(o, type, 1);
  withInteger(type, [&](auto zero) {
    using T = decltype(zero);
    o.x.run = unary<T, T, function>;
  });
}
/// A result of 32 bits.
template <auto function> Build countOf(size_t typePart) {
  return [typePart](const Match &m, Operands &o) {
    o.expect(2);
    o.x.d = o.result(0, 4);
    o.x.a = o.source(1, m.type(typePart));
    withInteger(m.type(typePart), [&](auto zero) {
      using T = decltype(zero);
      if constexpr (sizeof(T) >= 4)
        o.x.run = unary<uint32_t, T, function>;
    });
  };
}
template <auto function> void shift(const Match &m, Operands &o) {
  o.expect(3);
  Type type = m.type(0);
  o.x.d = o.result(0, bytesOf(type));
  o.x.a = o.source(1, type);
  o.x.b = o.source(2, Type::U32);
  withInteger(type, [&](auto zero) {
    using T = decltype(zero);
    o.x.run = binary<T, T, uint32_t, function>;
  });
}

/// `mode`: 0 and, 1 or, 2 xor, 3 not, 4 mov.
void predicateLogic(Warp &w, const Instruction &x) {
  uint32_t a = w.predicate(x.a) ^ (x.negated ? allLanes : 0);
  uint32_t b = x.b == noRow ? 0 : w.predicate(x.b) ^ (x.wide ? allLanes : 0);
  uint32_t value = x.mode == 0   ? a & b
                   : x.mode == 1 ? a | b
                   : x.mode == 2 ? a ^ b
                   : x.mode == 3 ? ~a
                                 : a;
  uint32_t &d = w.predicate(x.d);
  d = (d & ~w.active) | (value & w.active);
}
Build predicatesOf(uint8_t mode) {
  return [mode](const Match &, Operands &o) {
    size_t count = mode < 3 ? 2 : 1;
    o.expect(count + 1);
    o.x.d = o.predicateResult(0);
    if (o.x.d == noRow)
      o.fail("the result is not used");
    o.x.a = o.predicateSource(1, o.x.negated);
    if (count == 2)
      o.x.b = o.predicateSource(2, o.x.wide);
    o.x.mode = mode;
    o.x.run = predicateLogic;
  };
}

void lookup3(Warp &w, const Instruction &x) {
  const uint32_t *a = w.row<uint32_t>(x.a);
  const uint32_t *b = w.row<uint32_t>(x.b);
  const uint32_t *c = w.row<uint32_t>(x.c);
  auto table = uint32_t(x.value);
  eachLane<uint32_t>(w, x.d, [=](int n) {
    uint32_t result = 0;
    for (uint32_t i = 0; i < 8; ++i)
      if (table >> i & 1)
        result |= (i & 4 ? a[n] : ~a[n]) & (i & 2 ? b[n] : ~b[n]) &
                  (i & 1 ? c[n] : ~c[n]);
    return result;
  });
}

template <typename T> void insertField(Warp &w, const Instruction &x) {
  const T *a = w.row<T>(x.a), *b = w.row<T>(x.b);
  const uint32_t *c = w.row<uint32_t>(x.c), *e = w.row<uint32_t>(x.e);
  eachLane<T>(w, x.d, [=](int n) { return insert(a[n], b[n], c[n], e[n]); });
}

template <auto function> void threeWords(const Match &, Operands &o) {
  o.expect(4);
  o.x.d = o.result(0, 4);
  o.x.a = o.source(1, Type::B32);
  o.x.b = o.source(2, Type::B32);
  o.x.c = o.source(3, Type::B32);
  o.x.run = ternary<uint32_t, uint32_t, uint32_t, uint32_t, function>;
}

template <int which> void permuteBy(Warp &w, const Instruction &x) {
  static constexpr std::string_view names[] = {"f4e", "b4e", "rc8",
                                               "ecl", "ecr", "rc16"};
  const uint32_t *a = w.row<uint32_t>(x.a);
  const uint32_t *b = w.row<uint32_t>(x.b);
  const uint32_t *c = w.row<uint32_t>(x.c);
  eachLane<uint32_t>(w, x.d, [=](int n) {
    return permute(a[n], b[n], permuteMode(names[which], c[n]));
  });
}
template <int which> void permuteForm(const Match &m, Operands &o) {
  threeWords<permute>(m, o);
  o.x.run = permuteBy<which>;
}

} // namespace

void gpuemu::addBitForms(FormTable &t) {
  t.add("and.(b16|b32|b64)", logic<bitAnd>);
  t.add("or.(b16|b32|b64)", logic<bitOr>);
  t.add("xor.(b16|b32|b64)", logic<bitXor>);
  t.add("not.(b16|b32|b64)", inversion<bitNot>);
  t.add("cnot.(b16|b32|b64)", inversion<logicalNot>);
  t.add("and.pred", predicatesOf(0));
  t.add("or.pred", predicatesOf(1));
  t.add("xor.pred", predicatesOf(2));
  t.add("not.pred", predicatesOf(3));
  t.add("mov.pred", predicatesOf(4));
  t.add("shl.(b16|b32|b64)", shift<shiftLeft>);
  t.add("shr.(b16|b32|b64|u16|u32|u64|s16|s32|s64)", shift<shiftRight>);
  t.add("popc.(b32|b64)", countOf<countOnes>(0));
  t.add("clz.(b32|b64)", countOf<countLeadingZeros>(0));
  t.add("bfind.(u32|u64|s32|s64)", countOf<findHighest>(0));
  t.add("bfind.shiftamt.(u32|u64|s32|s64)", countOf<findHighestShift>(1));
  t.add("brev.(b32|b64)", inversion<reverse>);
  t.add("bfe.(u32|u64|s32|s64)", [](const Match &m, Operands &o) {
    o.expect(4);
    o.x.d = o.result(0, bytesOf(m.type(0)));
    o.x.a = o.source(1, m.type(0));
    o.x.b = o.source(2, Type::U32);
    o.x.c = o.source(3, Type::U32);
    withInteger(m.type(0), [&](auto zero) {
      using T = decltype(zero);
      if constexpr (sizeof(T) >= 4)
        o.x.run = ternary<T, T, uint32_t, uint32_t, extract>;
    });
  });
  t.add("bfi.(b32|b64)", [](const Match &m, Operands &o) {
    o.expect(5);
    o.x.d = o.result(0, bytesOf(m.type(0)));
    o.x.a = o.source(1, m.type(0));
    o.x.b = o.source(2, m.type(0));
    o.x.c = o.source(3, Type::U32);
    o.x.e = o.source(4, Type::U32);
    o.x.run =
        m.type(0) == Type::B64 ? insertField<uint64_t> : insertField<uint32_t>;
  });
  t.add("shf.l.wrap.b32", threeWords<funnelWrap>);
  t.add("shf.l.clamp.b32", threeWords<funnelClamp>);
  t.add("shf.r.wrap.b32", threeWords<funnelRightWrap>);
  t.add("shf.r.clamp.b32", threeWords<funnelRightClamp>);
  t.add("prmt.b32", threeWords<permute>);
  t.add("prmt.b32.f4e", permuteForm<0>);
  t.add("prmt.b32.b4e", permuteForm<1>);
  t.add("prmt.b32.rc8", permuteForm<2>);
  t.add("prmt.b32.ecl", permuteForm<3>);
  t.add("prmt.b32.ecr", permuteForm<4>);
  t.add("prmt.b32.rc16", permuteForm<5>);
  t.add("lop3.b32", [](const Match &, Operands &o) {
    o.expect(5);
    o.x.d = o.result(0, 4);
    o.x.a = o.source(1, Type::B32);
    o.x.b = o.source(2, Type::B32);
    o.x.c = o.source(3, Type::B32);
    o.x.value = int64_t(o.constant(4));
    o.x.run = lookup3;
  });
}
