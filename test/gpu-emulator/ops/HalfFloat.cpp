//===- HalfFloat.cpp - Arithmetic of f16, bf16 and their pairs --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums and products of two numbers of 16 bits are computed in single precision
// and rounded again, which gives the same as one rounding: 24 bits are at least
// 2p + 2 for p = 11 and p = 8. Fused products need double precision.
//
//===----------------------------------------------------------------------===//

#include "ops/Lanes.h"
#include "ops/Number.h"
#include "ops/Rounding.h"
#include "ptx/Forms.h"

using namespace gpuemu;

namespace {

Half fromFloat(float value, Half) { return toHalf(value); }
BFloat fromFloat(float value, BFloat) { return toBFloat(value); }

constexpr auto add = [](float a, float b) { return a + b; };
constexpr auto subtract = [](float a, float b) { return a - b; };
constexpr auto multiply = [](float a, float b) { return a * b; };

enum Modifier : uint8_t { Flush = 1, Saturate = 2, Relu = 4 };

template <typename T> T flushed(T value) {
  constexpr uint16_t exponent =
      sizeof(T) == 2 && std::is_same_v<T, Half> ? 0x7c00 : 0x7f80;
  return (value.bits & exponent) == 0 ? T{uint16_t(value.bits & 0x8000)}
                                      : value;
}
template <typename T> T finish(T value, uint8_t mode) {
  if (mode & Flush)
    value = flushed(value);
  if (mode & Saturate)
    return fromFloat(saturated(toFloat(value)), T());
  if ((mode & Relu) && (value.bits & 0x8000) && toFloat(value) <= 0)
    return T{0};
  return value;
}

/// `modified` handlers look at `mode`; the others are for no modifier.
template <typename T, auto operation, bool modified>
T two(T a, T b, uint8_t mode) {
  if (modified && (mode & Flush)) {
    a = flushed(a);
    b = flushed(b);
  }
  T result = fromFloat(operation(toFloat(a), toFloat(b)), T());
  return modified ? finish(result, mode) : result;
}
/// The last bit is set where a value is not exact ("round to odd"): a second
/// rounding, to half as many bits, is then as good as the only one. `error` has
/// the sign of what `value` lacks. No branches, so that lanes become vectors.
float toOdd(float value, float error) {
  uint32_t bits = floatToBits(value);
  uint32_t step = (error > 0) == (value > 0) ? 1 : ~uint32_t(0);
  bool adjusts =
      (error != 0) & ((bits & 1) == 0) & ((bits & 0x7f800000) != 0x7f800000);
  return bitsToFloat(adjusts ? bits + step : bits);
}
double toOdd(double value, double error) {
  auto bits = std::bit_cast<uint64_t>(value);
  uint64_t step = (error > 0) == (value > 0) ? 1 : ~uint64_t(0);
  bool adjusts =
      (error != 0) & ((bits & 1) == 0) & ((bits >> 52 & 0x7ff) != 0x7ff);
  return std::bit_cast<double>(adjusts ? bits + step : bits);
}
/// a + b, to odd.
template <typename F> F sumToOdd(F a, F b) {
  F sum = a + b, part = sum - a;
  return toOdd(sum, (a - (sum - part)) + (b - part));
}

/// The product of two halves is exact in single precision.
Half fused(Half a, Half b, Half c) {
  return toHalf(sumToOdd(toFloat(a) * toFloat(b), toFloat(c)));
}
/// That of two bf16 may be too small for it.
BFloat fused(BFloat a, BFloat b, BFloat c) {
  double sum =
      sumToOdd(double(toFloat(a)) * double(toFloat(b)), double(toFloat(c)));
  auto narrow = float(sum);
  return toBFloat(toOdd(narrow, float(sum - double(narrow))));
}

template <typename T, bool modified> T three(T a, T b, T c, uint8_t mode) {
  if (modified && (mode & Flush)) {
    a = flushed(a);
    b = flushed(b);
    c = flushed(c);
  }
  T result = fused(a, b, c);
  return modified ? finish(result, mode) : result;
}

template <typename T, auto operation, bool modified>
void single(Warp &w, const Instruction &x) {
  const T *a = w.row<T>(x.a), *b = w.row<T>(x.b);
  uint8_t mode = x.mode;
  eachLane<T>(w, x.d, [=](int n) {
    return two<T, operation, modified>(a[n], b[n], mode);
  });
}
/// Pairs are two rows of 16 bits that alternate.
template <typename T, auto operation, bool modified>
void pair(Warp &w, const Instruction &x) {
  const uint32_t *a = w.row<uint32_t>(x.a), *b = w.row<uint32_t>(x.b);
  uint8_t mode = x.mode;
  eachLane<uint32_t>(w, x.d, [=](int n) {
    T low =
        two<T, operation, modified>(T{uint16_t(a[n])}, T{uint16_t(b[n])}, mode);
    T high = two<T, operation, modified>(T{uint16_t(a[n] >> 16)},
                                         T{uint16_t(b[n] >> 16)}, mode);
    return uint32_t(low.bits) | uint32_t(high.bits) << 16;
  });
}
template <typename T, bool modified>
void singleFma(Warp &w, const Instruction &x) {
  const T *a = w.row<T>(x.a), *b = w.row<T>(x.b), *c = w.row<T>(x.c);
  uint8_t mode = x.mode;
  eachLane<T>(w, x.d, [=](int n) {
    return three<T, modified>(a[n], b[n], c[n], mode);
  });
}
template <typename T, bool modified>
void pairFma(Warp &w, const Instruction &x) {
  const uint32_t *a = w.row<uint32_t>(x.a), *b = w.row<uint32_t>(x.b),
                 *c = w.row<uint32_t>(x.c);
  uint8_t mode = x.mode;
  eachLane<uint32_t>(w, x.d, [=](int n) {
    T low = three<T, modified>(T{uint16_t(a[n])}, T{uint16_t(b[n])},
                               T{uint16_t(c[n])}, mode);
    T high =
        three<T, modified>(T{uint16_t(a[n] >> 16)}, T{uint16_t(b[n] >> 16)},
                           T{uint16_t(c[n] >> 16)}, mode);
    return uint32_t(low.bits) | uint32_t(high.bits) << 16;
  });
}
template <bool modified> Handler fmaFor(Type type) {
  switch (type) {
  case Type::F16:
    return singleFma<Half, modified>;
  case Type::BF16:
    return singleFma<BFloat, modified>;
  case Type::F16x2:
    return pairFma<Half, modified>;
  default:
    return pairFma<BFloat, modified>;
  }
}

template <bool isMaximum, bool keepsNan, typename T> T extreme(T a, T b) {
  float p = toFloat(a), q = toFloat(b);
  bool less = p < q || (p == q && (a.bits & 0x8000) > (b.bits & 0x8000));
  T result = less != isMaximum ? a : b;
  if (p != p)
    result = keepsNan ? a : b;
  else if (q != q)
    result = keepsNan ? b : a;
  float value = toFloat(result);
  return value != value ? T{halfNan} : result;
}
template <typename T, bool isMaximum, bool keepsNan>
void singleExtreme(Warp &w, const Instruction &x) {
  const T *a = w.row<T>(x.a), *b = w.row<T>(x.b);
  bool flushes = x.mode & Flush;
  eachLane<T>(w, x.d, [=](int n) {
    return flushes ? extreme<isMaximum, keepsNan>(flushed(a[n]), flushed(b[n]))
                   : extreme<isMaximum, keepsNan>(a[n], b[n]);
  });
}
template <typename T, bool isMaximum, bool keepsNan>
void pairExtreme(Warp &w, const Instruction &x) {
  const uint32_t *a = w.row<uint32_t>(x.a), *b = w.row<uint32_t>(x.b);
  bool flushes = x.mode & Flush;
  auto one = [=](uint32_t p, uint32_t q) {
    T u{uint16_t(p)}, v{uint16_t(q)};
    return uint32_t((flushes
                         ? extreme<isMaximum, keepsNan>(flushed(u), flushed(v))
                         : extreme<isMaximum, keepsNan>(u, v))
                        .bits);
  };
  eachLane<uint32_t>(w, x.d, [=](int n) {
    return one(a[n], b[n]) | one(a[n] >> 16, b[n] >> 16) << 16;
  });
}

template <uint32_t flip, uint32_t keep>
void pairSigns(Warp &w, const Instruction &x) {
  const uint32_t *a = w.row<uint32_t>(x.a);
  bool flushes = x.mode & Flush;
  eachLane<uint32_t>(w, x.d, [=](int n) {
    uint32_t bits = a[n];
    if (flushes)
      bits = uint32_t(flushed(Half{uint16_t(bits)}).bits) |
             uint32_t(flushed(Half{uint16_t(bits >> 16)}).bits) << 16;
    return (bits ^ flip) & keep;
  });
}
template <uint16_t flip, uint16_t keep>
void singleSigns(Warp &w, const Instruction &x) {
  const uint16_t *a = w.row<uint16_t>(x.a);
  bool flushes = x.mode & Flush;
  eachLane<uint16_t>(w, x.d, [=](int n) {
    uint16_t bits = flushes ? flushed(Half{a[n]}).bits : a[n];
    return uint16_t((bits ^ flip) & keep);
  });
}

/// sm_100: the first operands are narrow, the last one and the result are f32.
template <typename T, bool subtracts>
void mixedAdd(Warp &w, const Instruction &x) {
  const T *a = w.row<T>(x.a);
  const float *c = w.row<float>(x.c);
  bool saturates = x.mode & Saturate;
  auto rounding = Rounding(x.count);
  eachLane<float>(w, x.d, [=](int n) {
    float p = toFloat(a[n]), r = subtracts ? -c[n] : c[n];
    float sum = rounding == Rounding::Nearest
                    ? p + r
                    : compute(FloatOperation::Add, rounding, p, r, 0);
    return saturates ? saturated(sum) : canonical(sum);
  });
}
template <typename T> void mixedFma(Warp &w, const Instruction &x) {
  const T *a = w.row<T>(x.a), *b = w.row<T>(x.b);
  const float *c = w.row<float>(x.c);
  bool saturates = x.mode & Saturate;
  auto rounding = Rounding(x.count);
  eachLane<float>(w, x.d, [=](int n) {
    float p = toFloat(a[n]), q = toFloat(b[n]);
    float sum = rounding == Rounding::Nearest
                    ? std::fma(p, q, c[n])
                    : compute(FloatOperation::Fma, rounding, p, q, c[n]);
    return saturates ? saturated(sum) : canonical(sum);
  });
}

uint8_t modifiers(const Match &m) {
  return uint8_t((m.has("ftz") ? Flush : 0) | (m.has("sat") ? Saturate : 0) |
                 (m.has("relu") ? Relu : 0));
}
Type typeOf(const Match &m) {
  for (std::string_view name : {"f16", "f16x2", "bf16", "bf16x2"})
    if (m.has(name))
      return *typeNamed(name);
  return Type::None;
}
void operands(Operands &o, const Match &m, size_t count) {
  Type type = typeOf(m);
  o.expect(count + 1);
  o.x.d = o.result(0, bytesOf(type));
  o.x.a = o.source(1, type);
  if (count > 1)
    o.x.b = o.source(2, type);
  if (count > 2)
    o.x.c = o.source(3, type);
  o.x.mode = modifiers(m);
}

template <auto operation, bool modified> Handler arithmeticFor(Type type) {
  switch (type) {
  case Type::F16:
    return single<Half, operation, modified>;
  case Type::BF16:
    return single<BFloat, operation, modified>;
  case Type::F16x2:
    return pair<Half, operation, modified>;
  default:
    return pair<BFloat, operation, modified>;
  }
}
template <auto operation> void arithmetic(const Match &m, Operands &o) {
  operands(o, m, 2);
  o.x.run = o.x.mode ? arithmeticFor<operation, true>(typeOf(m))
                     : arithmeticFor<operation, false>(typeOf(m));
}
void fusedForm(const Match &m, Operands &o) {
  operands(o, m, 3);
  o.x.run = o.x.mode ? fmaFor<true>(typeOf(m)) : fmaFor<false>(typeOf(m));
}
template <bool isMaximum, bool keepsNan> Handler extremeFor(Type type) {
  switch (type) {
  case Type::F16:
    return singleExtreme<Half, isMaximum, keepsNan>;
  case Type::BF16:
    return singleExtreme<BFloat, isMaximum, keepsNan>;
  case Type::F16x2:
    return pairExtreme<Half, isMaximum, keepsNan>;
  default:
    return pairExtreme<BFloat, isMaximum, keepsNan>;
  }
}
template <bool isMaximum> void extremes(const Match &m, Operands &o) {
  operands(o, m, 2);
  o.x.run = m.has("NaN") ? extremeFor<isMaximum, true>(typeOf(m))
                         : extremeFor<isMaximum, false>(typeOf(m));
}
template <bool isAbsolute> void signs(const Match &m, Operands &o) {
  operands(o, m, 1);
  constexpr uint32_t flip = isAbsolute ? 0 : 0x80008000;
  constexpr uint32_t keep = isAbsolute ? 0x7fff7fff : 0xffffffff;
  o.x.run = bytesOf(typeOf(m)) == 4
                ? pairSigns<flip, keep>
                : singleSigns<uint16_t(flip), uint16_t(keep)>;
}

template <bool subtracts> void mixedSum(const Match &m, Operands &o) {
  Type type = typeOf(m);
  o.expect(3);
  o.x.d = o.result(0, 4);
  o.x.a = o.source(1, type);
  o.x.c = o.source(2, Type::F32);
  o.x.mode = modifiers(m);
  o.x.count = uint8_t(roundingNamed(m[0]));
  o.x.run = type == Type::F16 ? mixedAdd<Half, subtracts>
                              : mixedAdd<BFloat, subtracts>;
}

} // namespace

void gpuemu::addHalfForms(FormTable &t) {
  for (std::string type : {"[ftz].[sat].(f16|f16x2)", "(bf16|bf16x2)"}) {
    t.add("add.[rn]." + type, arithmetic<add>);
    t.add("sub.[rn]." + type, arithmetic<subtract>);
    t.add("mul.[rn]." + type, arithmetic<multiply>);
    t.add("fma.rn." + type, fusedForm);
  }
  t.add("fma.rn.[ftz].relu.(f16|f16x2)", fusedForm);
  t.add("fma.rn.relu.(bf16|bf16x2)", fusedForm);
  t.add("min.[ftz].[NaN].(f16|f16x2)", extremes<false>);
  t.add("max.[ftz].[NaN].(f16|f16x2)", extremes<true>);
  t.add("min.[NaN].(bf16|bf16x2)", extremes<false>);
  t.add("max.[NaN].(bf16|bf16x2)", extremes<true>);
  t.add("neg.[ftz].(f16|f16x2)", signs<false>);
  t.add("abs.[ftz].(f16|f16x2)", signs<true>);
  t.add("neg.(bf16|bf16x2)", signs<false>);
  t.add("abs.(bf16|bf16x2)", signs<true>);
  t.add("add.[rn|rz|rm|rp].[sat].f32.(f16|bf16)", mixedSum<false>);
  t.add("sub.[rn|rz|rm|rp].[sat].f32.(f16|bf16)", mixedSum<true>);
  t.add("fma.(rn|rz|rm|rp).[sat].f32.(f16|bf16)",
        [](const Match &m, Operands &o) {
          Type type = typeOf(m);
          o.expect(4);
          o.x.d = o.result(0, 4);
          o.x.a = o.source(1, type);
          o.x.b = o.source(2, type);
          o.x.c = o.source(3, Type::F32);
          o.x.mode = modifiers(m);
          o.x.count = uint8_t(roundingNamed(m[0]));
          o.x.run = type == Type::F16 ? mixedFma<Half> : mixedFma<BFloat>;
        });
}
