//===- Float.cpp - Arithmetic in single and double precision ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ops/Lanes.h"
#include "ops/Number.h"
#include "ops/Rounding.h"
#include "ptx/Forms.h"

#include <limits>

using namespace gpuemu;

namespace {

constexpr auto add = [](auto a, auto b, auto) { return a + b; };
constexpr auto subtract = [](auto a, auto b, auto) { return a - b; };
constexpr auto multiply = [](auto a, auto b, auto) { return a * b; };
constexpr auto fusedMultiplyAdd = [](auto a, auto b, auto c) {
  return std::fma(a, b, c);
};
constexpr auto divide = [](auto a, auto b, auto) { return a / b; };
/// 1 / b and sqrt(b): operations with one operand take it twice.
constexpr auto squareRoot = [](auto, auto b, auto) { return std::sqrt(b); };

/// A rounded operation: flushes and saturates as its modifiers say.
template <typename T, auto operation, bool flushes, bool saturates>
void rounded(Warp &w, const Instruction &x) {
  const T *a = w.row<T>(x.a), *b = w.row<T>(x.b), *c = w.row<T>(x.c);
  eachLane<T>(w, x.d, [=](int n) {
    T p = a[n], q = b[n], r = c[n];
    if constexpr (flushes) {
      p = flush(p);
      q = flush(q);
      r = flush(r);
    }
    T result = operation(p, q, r);
    if constexpr (flushes)
      result = flush(result);
    if constexpr (saturates)
      return saturated(result);
    else
      return canonical(result);
  });
}

constexpr uint8_t flushBit = 4, saturateBit = 8;

template <typename T, FloatOperation operation>
void directed(Warp &w, const Instruction &x) {
  const T *a = w.row<T>(x.a), *b = w.row<T>(x.b), *c = w.row<T>(x.c);
  T *d = w.row<T>(x.d);
  auto rounding = Rounding(x.mode & 3);
  GPUEMU_ACTIVE(w.active) {
    T p = a[n], q = b[n], r = c[n];
    if (x.mode & flushBit) {
      p = flush(p);
      q = flush(q);
      r = flush(r);
    }
    T result = canonical(compute(operation, rounding, p, q, r));
    if (x.mode & flushBit)
      result = flush(result);
    d[n] = x.mode & saturateBit ? saturated(result) : result;
  }
}

template <typename T, auto operation, FloatOperation slow>
void choose(const Match &m, Instruction &x) {
  Rounding rounding = Rounding::Nearest;
  for (std::string_view name : {"rz", "rm", "rp"})
    if (m.has(name))
      rounding = roundingNamed(name);
  bool flushes = m.has("ftz"), saturates = m.has("sat");
  if (rounding != Rounding::Nearest) {
    x.mode = uint8_t(uint8_t(rounding) | (flushes ? flushBit : 0) |
                     (saturates ? saturateBit : 0));
    x.run = directed<T, slow>;
  } else if (flushes) {
    x.run = saturates ? rounded<T, operation, true, true>
                      : rounded<T, operation, true, false>;
  } else {
    x.run = saturates ? rounded<T, operation, false, true>
                      : rounded<T, operation, false, false>;
  }
}

/// f32x2: two numbers in 64 bits, each computed by itself.
template <FloatOperation operation, auto nearest>
void pairs(Warp &w, const Instruction &x) {
  const uint64_t *a = w.row<uint64_t>(x.a), *b = w.row<uint64_t>(x.b),
                 *c = w.row<uint64_t>(x.c);
  auto rounding = Rounding(x.mode & 3);
  bool flushes = x.mode & flushBit;
  eachLane<uint64_t>(w, x.d, [=](int n) {
    uint64_t result = 0;
    for (int half = 0; half < 64; half += 32) {
      float p = bitsToFloat(uint32_t(a[n] >> half)),
            q = bitsToFloat(uint32_t(b[n] >> half)),
            r = bitsToFloat(uint32_t(c[n] >> half));
      if (flushes) {
        p = flush(p);
        q = flush(q);
        r = flush(r);
      }
      float value = rounding == Rounding::Nearest
                        ? nearest(p, q, r)
                        : compute(operation, rounding, p, q, r);
      value = canonical(flushes ? flush(value) : value);
      result |= uint64_t(floatToBits(value)) << half;
    }
    return result;
  });
}
template <FloatOperation operation, auto nearest> Build pairsOf(size_t count) {
  return [count](const Match &m, Operands &o) {
    o.expect(count + 1);
    o.x.d = o.result(0, 8);
    o.x.a = o.source(1, Type::B64);
    o.x.b = o.source(2, Type::B64);
    o.x.c = count > 2 ? o.source(3, Type::B64) : o.x.a;
    o.x.mode =
        uint8_t(uint8_t(roundingNamed(m[0])) | (m.has("ftz") ? flushBit : 0));
    o.x.run = pairs<operation, nearest>;
  };
}

/// An operation with `count` operands, in both precisions.
template <auto operation, FloatOperation slow> Build roundedOf(size_t count) {
  return [count](const Match &m, Operands &o) {
    Type type = m.has("f64") ? Type::F64 : Type::F32;
    o.expect(count + 1);
    o.x.d = o.result(0, bytesOf(type));
    o.x.a = o.source(1, type);
    o.x.b = count > 1 ? o.source(2, type) : o.x.a;
    o.x.c = count > 2 ? o.source(3, type) : o.x.a;
    if (type == Type::F64)
      choose<double, operation, slow>(m, o.x);
    else
      choose<float, operation, slow>(m, o.x);
  };
}

void reciprocal(const Match &m, Operands &o) {
  Type type = m.has("f64") ? Type::F64 : Type::F32;
  o.expect(2);
  o.x.d = o.result(0, bytesOf(type));
  o.x.b = o.x.c = o.source(1, type);
  o.x.a = o.constantRow(type == Type::F64 ? std::bit_cast<uint64_t>(1.0)
                                          : floatToBits(1.0f),
                        bytesOf(type));
  if (type == Type::F64)
    choose<double, divide, FloatOperation::Divide>(m, o.x);
  else
    choose<float, divide, FloatOperation::Divide>(m, o.x);
}

/// neg and abs change bits, of a NaN, too.
template <typename U, U flip, U keep, bool flushes>
void signs(Warp &w, const Instruction &x) {
  const U *a = w.row<U>(x.a);
  eachLane<U>(w, x.d, [=](int n) {
    U bits = a[n];
    if constexpr (flushes)
      bits = U(floatToBits(flush(bitsToFloat(uint32_t(bits)))));
    return U((bits ^ flip) & keep);
  });
}
constexpr uint32_t sign32 = uint32_t(1) << 31;
constexpr uint64_t sign64 = uint64_t(1) << 63;

void changeSign(const Match &m, Operands &o, bool isAbsolute) {
  Type type = m.has("f64") ? Type::F64 : Type::F32;
  o.expect(2);
  o.x.d = o.result(0, bytesOf(type));
  o.x.a = o.source(1, type);
  if (type == Type::F64)
    o.x.run = isAbsolute ? signs<uint64_t, 0, ~sign64, false>
                         : signs<uint64_t, sign64, ~uint64_t(0), false>;
  else if (m.has("ftz"))
    o.x.run = isAbsolute ? signs<uint32_t, 0, ~sign32, true>
                         : signs<uint32_t, sign32, ~uint32_t(0), true>;
  else
    o.x.run = isAbsolute ? signs<uint32_t, 0, ~sign32, false>
                         : signs<uint32_t, sign32, ~uint32_t(0), false>;
}

/// min and max: -0 is less than +0, and a NaN is the result only where both
/// operands are one, or with .NaN where one is.
template <typename T, bool isMaximum, bool flushes, bool keepsNan>
void extreme(Warp &w, const Instruction &x) {
  const T *a = w.row<T>(x.a), *b = w.row<T>(x.b);
  eachLane<T>(w, x.d, [=](int n) {
    T p = a[n], q = b[n];
    if constexpr (flushes) {
      p = flush(p);
      q = flush(q);
    }
    bool less = p < q || (p == q && std::signbit(p) > std::signbit(q));
    T result = less != isMaximum ? p : q;
    if (p != p)
      result = keepsNan ? p : q;
    else if (q != q)
      result = keepsNan ? q : p;
    if constexpr (sizeof(T) == 8)
      return result != result ? std::bit_cast<double>(0x7fffffffffffffff)
                              : result;
    else
      return canonical(result);
  });
}
template <bool isMaximum> void extremes(const Match &m, Operands &o) {
  Type type = m.has("f64") ? Type::F64 : Type::F32;
  o.expect(3);
  o.x.d = o.result(0, bytesOf(type));
  o.x.a = o.source(1, type);
  o.x.b = o.source(2, type);
  bool flushes = m.has("ftz"), keeps = m.has("NaN");
  if (type == Type::F64)
    o.x.run = extreme<double, isMaximum, false, false>;
  else if (flushes)
    o.x.run = keeps ? extreme<float, isMaximum, true, true>
                    : extreme<float, isMaximum, true, false>;
  else
    o.x.run = keeps ? extreme<float, isMaximum, false, true>
                    : extreme<float, isMaximum, false, false>;
}

/// copysign d, a, b: the sign of a, the rest of b.
constexpr auto copySign32 = [](uint32_t a, uint32_t b) {
  return (a & sign32) | (b & ~sign32);
};
constexpr auto copySign64 = [](uint64_t a, uint64_t b) {
  return (a & sign64) | (b & ~sign64);
};

/// testp: `mode` is the index of the property.
template <typename T> void testProperty(Warp &w, const Instruction &x) {
  const T *a = w.row<T>(x.a);
  eachPredicate(w, x.d, [=](int n) {
    int kind = std::fpclassify(a[n]);
    switch (x.mode) {
    case 0:
      return std::isfinite(a[n]);
    case 1:
      return kind == FP_INFINITE;
    case 2:
      return kind != FP_NAN;
    case 3:
      return kind == FP_NAN;
    case 4:
      return kind == FP_NORMAL;
    default:
      return kind == FP_SUBNORMAL;
    }
  });
}

} // namespace

void gpuemu::addFloatForms(FormTable &t) {
  using Op = FloatOperation;
  for (std::string type : {"[ftz].[sat].f32", "f64"}) {
    t.add("add.[rn|rz|rm|rp]." + type, roundedOf<add, Op::Add>(2));
    t.add("sub.[rn|rz|rm|rp]." + type, roundedOf<subtract, Op::Subtract>(2));
    t.add("mul.[rn|rz|rm|rp]." + type, roundedOf<multiply, Op::Multiply>(2));
    t.add("fma.(rn|rz|rm|rp)." + type, roundedOf<fusedMultiplyAdd, Op::Fma>(3));
    t.add("mad.(rn|rz|rm|rp)." + type, roundedOf<fusedMultiplyAdd, Op::Fma>(3));
  }
  t.add("add.[rn|rz|rm|rp].[ftz].f32x2", pairsOf<Op::Add, add>(2));
  t.add("sub.[rn|rz|rm|rp].[ftz].f32x2", pairsOf<Op::Subtract, subtract>(2));
  t.add("mul.[rn|rz|rm|rp].[ftz].f32x2", pairsOf<Op::Multiply, multiply>(2));
  t.add("fma.(rn|rz|rm|rp).[ftz].f32x2", pairsOf<Op::Fma, fusedMultiplyAdd>(3));
  for (std::string type : {"[ftz].f32", "f64"}) {
    t.add("div.(rn|rz|rm|rp)." + type, roundedOf<divide, Op::Divide>(2));
    t.add("sqrt.(rn|rz|rm|rp)." + type, roundedOf<squareRoot, Op::Sqrt>(1));
    t.add("rcp.(rn|rz|rm|rp)." + type, reciprocal);
    t.add("neg." + type,
          [](const Match &m, Operands &o) { changeSign(m, o, false); });
    t.add("abs." + type,
          [](const Match &m, Operands &o) { changeSign(m, o, true); });
  }
  // What the hardware approximates is rounded once here.
  t.add("div.(approx|full).[ftz].f32", roundedOf<divide, Op::Divide>(2));
  t.add("rcp.approx.[ftz].f32", reciprocal);
  t.add("rcp.approx.ftz.f64", reciprocal);
  t.add("sqrt.approx.[ftz].f32", roundedOf<squareRoot, Op::Sqrt>(1));
  t.add("min.[ftz].[NaN].f32", extremes<false>);
  t.add("max.[ftz].[NaN].f32", extremes<true>);
  t.add("min.f64", extremes<false>);
  t.add("max.f64", extremes<true>);
  t.add("copysign.(f32|f64)", [](const Match &m, Operands &o) {
    Type type = m.type(0);
    o.expect(3);
    o.x.d = o.result(0, bytesOf(type));
    o.x.a = o.source(1, type);
    o.x.b = o.source(2, type);
    o.x.run = type == Type::F64
                  ? binary<uint64_t, uint64_t, uint64_t, copySign64>
                  : binary<uint32_t, uint32_t, uint32_t, copySign32>;
  });
  t.add("testp.(finite|infinite|number|notanumber|normal|subnormal).(f32|f64)",
        [](const Match &m, Operands &o) {
          static constexpr std::string_view names[] = {"finite", "infinite",
                                                       "number", "notanumber",
                                                       "normal", "subnormal"};
          while (names[o.x.mode] != m[0])
            ++o.x.mode;
          o.expect(2);
          o.x.d = o.predicateResult(0);
          o.x.a = o.source(1, m.type(1));
          o.x.run = m.type(1) == Type::F64 ? testProperty<double>
                                           : testProperty<float>;
        });
}
