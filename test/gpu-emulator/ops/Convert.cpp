//===- Convert.cpp - Conversions between types ------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A conversion reads a row as integers of 64 bits or as doubles, and writes a
// row from these. The registers may be wider than the types. What is usual in
// kernels has handlers of its own.
//
//===----------------------------------------------------------------------===//

#include "ops/Lanes.h"
#include "ops/Number.h"
#include "ops/Rounding.h"
#include "ptx/Forms.h"

#include <algorithm>
#include <limits>
#include <type_traits>

using namespace gpuemu;

namespace {

bool isFloat(Type type) { return type >= Type::F16 && type <= Type::F64; }
bool isSigned(Type type) {
  return type == Type::S8 || type == Type::S16 || type == Type::S32 ||
         type == Type::S64;
}

/// Calls f with an unsigned integer of a register's size.
template <typename F> void withRegister(unsigned bytes, F f) {
  switch (bytes) {
  case 1:
    return f(uint8_t());
  case 2:
    return f(uint16_t());
  case 4:
    return f(uint32_t());
  default:
    return f(uint64_t());
  }
}

/// How to convert; kept beside the program's instructions in `value`.
struct Way {
  uint8_t sourceBytes, resultBytes;
  Type from, to;
  /// Of rni, rzi, rmi, rpi: the letter; 0 for none.
  char integerRounding;
  Rounding rounding;
  bool saturates, flushes;
};
static_assert(sizeof(Way) == 8);

void readIntegers(Warp &w, uint32_t row, const Way &way, int64_t *out) {
  withRegister(way.sourceBytes, [&](auto stored) {
    const auto *a = w.row<decltype(stored)>(row);
    withInteger(way.from, [&](auto zero) {
      using T = decltype(zero);
      GPUEMU_LANES out[n] = int64_t(T(a[n]));
    });
  });
}
void writeIntegers(Warp &w, uint32_t row, const Way &way, const int64_t *in) {
  withRegister(way.resultBytes, [&](auto stored) {
    using R = decltype(stored);
    withInteger(way.to, [&](auto zero) {
      using T = decltype(zero);
      eachLane<R>(w, row, [=](int n) { return R(T(in[n])); });
    });
  });
}

/// The limits of an integer type; those of u64 do not fit into int64_t.
struct Limits {
  __int128 least, most;
};
Limits limitsOf(Type type) {
  Limits result{};
  withInteger(type, [&](auto zero) {
    using T = decltype(zero);
    result = {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
  });
  return result;
}

void integerToInteger(Warp &w, const Instruction &x) {
  auto way = std::bit_cast<Way>(x.value);
  alignas(64) int64_t values[32];
  readIntegers(w, x.a, way, values);
  if (way.saturates) {
    Limits limits = limitsOf(way.to);
    bool wide = way.from == Type::U64;
    for (int64_t &value : values) {
      __int128 exact = wide ? __int128(uint64_t(value)) : __int128(value);
      value = int64_t(std::clamp(exact, limits.least, limits.most));
    }
  }
  writeIntegers(w, x.d, way, values);
}

double readFloat(Warp &w, uint32_t row, Type type, unsigned lane) {
  switch (type) {
  case Type::F16:
    return toFloat(w.row<Half>(row)[lane]);
  case Type::BF16:
    return toFloat(w.row<BFloat>(row)[lane]);
  case Type::F64:
    return w.row<double>(row)[lane];
  default:
    return w.row<float>(row)[lane];
  }
}

double roundToInteger(char rounding, double value) {
  switch (rounding) {
  case 'z':
    return std::trunc(value);
  case 'm':
    return std::floor(value);
  case 'p':
    return std::ceil(value);
  default:
    return std::nearbyint(value);
  }
}

/// Out of range: the nearest integer; NaN: 0.
int64_t toInteger(double value, const Way &way, const Limits &limits) {
  if (value != value)
    return 0;
  value = roundToInteger(way.integerRounding, value);
  if (value <= double(limits.least))
    return int64_t(limits.least);
  if (value >= double(limits.most))
    return int64_t(limits.most);
  return int64_t(__int128(value));
}

void floatToInteger(Warp &w, const Instruction &x) {
  auto way = std::bit_cast<Way>(x.value);
  Limits limits = limitsOf(way.to);
  int64_t values[32];
  for (unsigned n = 0; n < 32; ++n) {
    double value = readFloat(w, x.a, way.from, n);
    if (way.flushes)
      value = flush(float(value));
    values[n] = toInteger(value, way, limits);
  }
  writeIntegers(w, x.d, way, values);
}

/// Rounds to 16 bits: from the nearest number one step, if it is on the wrong
/// side.
template <typename T> uint16_t roundDirected(Rounding rounding, double value) {
  uint16_t bits =
      std::is_same_v<T, Half> ? roundHalf(value) : roundBFloat(value);
  double nearest = toFloat(T{bits});
  if (rounding == Rounding::Nearest || nearest == value || value != value)
    return bits;
  bool towardsZero =
      rounding == Rounding::Zero || (rounding == Rounding::Down) == (value > 0);
  bool tooFar = std::fabs(nearest) > std::fabs(value);
  if (towardsZero)
    return tooFar ? uint16_t(bits - 1) : bits;
  return tooFar ? bits : uint16_t(bits + 1);
}

void writeFloat(Warp &w, uint32_t row, const Way &way, unsigned lane,
                double value) {
  switch (way.to) {
  case Type::F16:
    w.row<Half>(row)[lane] = {roundDirected<Half>(way.rounding, value)};
    break;
  case Type::BF16:
    w.row<BFloat>(row)[lane] = {roundDirected<BFloat>(way.rounding, value)};
    break;
  case Type::F64:
    w.row<double>(row)[lane] = value;
    break;
  default: {
    float result = way.rounding == Rounding::Nearest
                       ? float(value)
                       : narrow(way.rounding, value);
    w.row<float>(row)[lane] = canonical(way.flushes ? flush(result) : result);
  }
  }
}

void floatToFloat(Warp &w, const Instruction &x) {
  auto way = std::bit_cast<Way>(x.value);
  GPUEMU_ACTIVE(w.active) {
    double value = readFloat(w, x.a, way.from, n);
    if (way.flushes && way.from == Type::F32)
      value = flush(float(value));
    if (way.integerRounding)
      value = roundToInteger(way.integerRounding, value);
    if (way.saturates)
      value = saturated(value);
    writeFloat(w, x.d, way, n, value);
  }
}

/// A double whose last bit is set where the integer has more bits than fit.
template <typename I> double toOddDouble(I value) {
  I magnitude = value < 0 ? I(0) - value : value;
  if (uint64_t(magnitude) < uint64_t(1) << 53)
    return double(value);
  I low = value & 0xfff;
  double high = double(value - low);
  return addToOdd(high, double(low));
}

void integerToFloat(Warp &w, const Instruction &x) {
  auto way = std::bit_cast<Way>(x.value);
  alignas(64) int64_t values[32];
  readIntegers(w, x.a, way, values);
  bool wide = way.from == Type::U64;
  auto convert = [&](auto value, unsigned n) {
    if (way.to == Type::F32) {
      float result = fromInteger(way.rounding, value, float());
      w.row<float>(x.d)[n] = way.saturates ? saturated(result) : result;
    } else if (way.to == Type::F64) {
      w.row<double>(x.d)[n] = fromInteger(way.rounding, value, double());
    } else {
      double exact = toOddDouble(value);
      writeFloat(w, x.d, way, n, way.saturates ? saturated(exact) : exact);
    }
  };
  GPUEMU_ACTIVE(w.active) {
    if (wide)
      convert(uint64_t(values[n]), n);
    else
      convert(values[n], n);
  }
}

// Handlers of what kernels do often.
constexpr auto halfToFloat = [](Half a) { return canonical(toFloat(a)); };
/// The upper half of a float: also of a NaN.
constexpr auto bfloatToFloat = [](BFloat a) { return toFloat(a); };
constexpr auto floatToHalf = [](float a) { return toHalf(a); };
constexpr auto floatToBFloat = [](float a) { return toBFloat(a); };
constexpr auto intToFloat = [](int32_t a) { return float(a); };
constexpr auto floatToDouble = [](float a) { return double(a); };

Handler usualHandler(const Way &way) {
  bool plain = way.rounding == Rounding::Nearest && !way.integerRounding &&
               !way.saturates && !way.flushes &&
               way.sourceBytes == bytesOf(way.from) &&
               way.resultBytes == bytesOf(way.to);
  if (!plain)
    return nullptr;
  if (way.from == Type::F16 && way.to == Type::F32)
    return unary<float, Half, halfToFloat>;
  if (way.from == Type::BF16 && way.to == Type::F32)
    return unary<float, BFloat, bfloatToFloat>;
  if (way.from == Type::F32 && way.to == Type::F16)
    return unary<Half, float, floatToHalf>;
  if (way.from == Type::F32 && way.to == Type::BF16)
    return unary<BFloat, float, floatToBFloat>;
  if (way.from == Type::S32 && way.to == Type::F32)
    return unary<float, int32_t, intToFloat>;
  if (way.from == Type::F32 && way.to == Type::F64)
    return unary<double, float, floatToDouble>;
  return nullptr;
}

/// The last two parts of a form are the types.
void conversion(const Match &m, Operands &o, size_t toPart) {
  Way way{};
  way.to = m.type(toPart);
  way.from = m.type(toPart + 1);
  for (std::string_view name : {"rn", "rz", "rm", "rp"})
    if (m.has(name))
      way.rounding = roundingNamed(name);
  for (std::string_view name : {"rni", "rzi", "rmi", "rpi"})
    if (m.has(name))
      way.integerRounding = name[1];
  way.saturates = m.has("sat");
  way.flushes = m.has("ftz");
  o.expect(2);
  unsigned sourceBytes = 0, resultBytes = 0;
  o.x.d = o.wideResult(o[0], way.to, resultBytes);
  o.x.a = o.wideSource(o[1], way.from, sourceBytes);
  way.sourceBytes = uint8_t(sourceBytes);
  way.resultBytes = uint8_t(resultBytes);
  if (isFloat(way.to) && resultBytes != bytesOf(way.to))
    o.fail("a register of the result's size is expected");
  if (isFloat(way.from) && sourceBytes != bytesOf(way.from))
    o.fail("a register of the operand's size is expected");
  // As ptxas: where nothing can be out of range, there is no .sat; and there
  // are no conversions between bf16 and 8 bits.
  if (way.saturates && !isFloat(way.from) && !isFloat(way.to)) {
    Limits from = limitsOf(way.from), to = limitsOf(way.to);
    if (to.least <= from.least && from.most <= to.most)
      o.fail(".sat of a conversion to a type that has all values");
  }
  if ((way.from == Type::BF16 && bytesOf(way.to) == 1) ||
      (way.to == Type::BF16 && bytesOf(way.from) == 1))
    o.fail("PTX does not convert between bf16 and integers of 8 bits");
  o.x.value = std::bit_cast<int64_t>(way);
  o.x.run = usualHandler(way);
  if (o.x.run)
    return;
  if (isFloat(way.from))
    o.x.run = isFloat(way.to) ? floatToFloat : floatToInteger;
  else
    o.x.run = isFloat(way.to) ? integerToFloat : integerToInteger;
}

/// To pairs, or with .relu or .satfinite. `mode`: 1 relu, 2 satfinite.
template <typename T>
uint16_t toNarrow(float value, Rounding rounding, uint8_t mode) {
  uint16_t bits =
      rounding == Rounding::Nearest
          ? std::is_same_v<T, Half> ? roundHalf(value) : roundBFloat(value)
          : roundDirected<T>(rounding, double(value));
  constexpr uint16_t infinity = std::is_same_v<T, Half> ? 0x7c00 : 0x7f80;
  if ((mode & 2) && (bits & 0x7fff) == infinity)
    bits = uint16_t(bits - 1);
  if ((mode & 1) && (bits & 0x8000))
    bits = 0;
  return bits;
}
template <typename T> void toPair(Warp &w, const Instruction &x) {
  const float *a = w.row<float>(x.a), *b = w.row<float>(x.b);
  auto rounding = Rounding(x.count);
  uint8_t mode = x.mode;
  eachLane<uint32_t>(w, x.d, [=](int n) {
    return uint32_t(toNarrow<T>(b[n], rounding, mode)) |
           uint32_t(toNarrow<T>(a[n], rounding, mode)) << 16;
  });
}
template <typename T> void toPairNearest(Warp &w, const Instruction &x) {
  const float *a = w.row<float>(x.a), *b = w.row<float>(x.b);
  eachLane<uint32_t>(w, x.d, [=](int n) {
    return uint32_t(toNarrow<T>(b[n], Rounding::Nearest, 0)) |
           uint32_t(toNarrow<T>(a[n], Rounding::Nearest, 0)) << 16;
  });
}
template <typename T> void toSingle(Warp &w, const Instruction &x) {
  const float *a = w.row<float>(x.a);
  auto rounding = Rounding(x.count);
  uint8_t mode = x.mode;
  eachLane<uint16_t>(w, x.d,
                     [=](int n) { return toNarrow<T>(a[n], rounding, mode); });
}
void narrowForm(const Match &m, Operands &o) {
  bool isPair = m.has("f16x2") || m.has("bf16x2");
  bool isHalf = m.has("f16x2") || m.has("f16");
  o.expect(isPair ? 3 : 2);
  o.x.d = o.result(0, isPair ? 4 : 2);
  o.x.a = o.source(1, Type::F32);
  if (isPair)
    o.x.b = o.source(2, Type::F32);
  o.x.count = uint8_t(roundingNamed(m[0]));
  o.x.mode = uint8_t((m.has("relu") ? 1 : 0) | (m.has("satfinite") ? 2 : 0));
  if (!isPair)
    o.x.run = isHalf ? toSingle<Half> : toSingle<BFloat>;
  else if (o.x.mode == 0 && m[0] == "rn")
    o.x.run = isHalf ? toPairNearest<Half> : toPairNearest<BFloat>;
  else
    o.x.run = isHalf ? toPair<Half> : toPair<BFloat>;
}

/// tf32 keeps 10 bits of the fraction. `mode`: 1 relu, 2 satfinite; `count`: 0
/// to the nearest, ties to even; 1 towards zero; 4 ties away from zero.
void toTf32(Warp &w, const Instruction &x) {
  const uint32_t *a = w.row<uint32_t>(x.a);
  eachLane<uint32_t>(w, x.d, [=](int n) {
    uint32_t bits = a[n], magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000)
      return floatNan;
    if (magnitude < 0x7f800000 && x.count != 1)
      bits += x.count == 4 ? 0x1000 : 0xfff + (bits >> 13 & 1);
    bits &= ~uint32_t(0x1fff);
    if ((x.mode & 2) && (bits & 0x7fffffff) == 0x7f800000)
      bits = (bits & 0x80000000) | 0x7f7fe000;
    return (x.mode & 1) && (bits >> 31) ? 0u : bits;
  });
}

} // namespace

void gpuemu::addConvertForms(FormTable &t) {
  const std::string integers = "(u8|u16|u32|u64|s8|s16|s32|s64)";
  t.add("cvt.[sat]." + integers + "." + integers,
        [](const Match &m, Operands &o) { conversion(m, o, 1); });
  t.add("cvt.(rni|rzi|rmi|rpi).[ftz].[sat]." + integers + ".(f16|bf16|f32|f64)",
        [](const Match &m, Operands &o) { conversion(m, o, 3); });
  t.add("cvt.(rn|rz|rm|rp).[sat].(f16|bf16|f32|f64)." + integers,
        [](const Match &m, Operands &o) { conversion(m, o, 2); });
  for (std::string type : {"f16", "bf16", "f32", "f64"}) {
    t.add("cvt.[rni|rzi|rmi|rpi].[ftz].[sat]." + type + "." + type,
          [](const Match &m, Operands &o) { conversion(m, o, 3); });
  }
  // Wider: exact.
  for (std::string type : {"f32.(f16|bf16)", "f64.(f16|bf16|f32)"})
    t.add("cvt.[ftz].[sat]." + type,
          [](const Match &m, Operands &o) { conversion(m, o, 2); });
  // Narrower, or of another format.
  for (std::string type :
       {"f32.f64", "f16.(f32|f64|bf16)", "bf16.(f32|f64|f16)"})
    t.add("cvt.(rn|rz|rm|rp).[ftz].[sat]." + type,
          [](const Match &m, Operands &o) { conversion(m, o, 3); });
  t.add("cvt.(rn|rz).[relu].[satfinite].(f16x2|bf16x2).f32", narrowForm);
  t.add("cvt.(rn|rz).relu.[satfinite].(f16|bf16).f32", narrowForm);
  t.add("cvt.(rn|rz).satfinite.(f16|bf16).f32", narrowForm);
  t.add("cvt.(rn|rz|rna).[satfinite].[relu].tf32.f32", [](const Match &m,
                                                          Operands &o) {
    o.expect(2);
    o.x.d = o.result(0, 4);
    o.x.a = o.source(1, Type::F32);
    o.x.count = m[0] == "rz" ? 1 : m[0] == "rna" ? 4 : 0;
    o.x.mode = uint8_t((m.has("relu") ? 1 : 0) | (m.has("satfinite") ? 2 : 0));
    o.x.run = toTf32;
  });
}
