//===- Functions.cpp - Approximate functions --------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The manual bounds the errors of these functions. The emulator computes them
// in double precision and rounds once, which hardware does not do.
//
//===----------------------------------------------------------------------===//

#include "ops/Lanes.h"
#include "ops/Number.h"
#include "ptx/Forms.h"

using namespace gpuemu;

namespace {

constexpr auto exp2Of = [](double a) { return std::exp2(a); };
constexpr auto log2Of = [](double a) { return std::log2(a); };
constexpr auto sinOf = [](double a) { return std::sin(a); };
constexpr auto cosOf = [](double a) { return std::cos(a); };
constexpr auto tanhOf = [](double a) { return std::tanh(a); };
constexpr auto rsqrtOf = [](double a) { return 1 / std::sqrt(a); };

template <auto function> void ofFloat(Warp &w, const Instruction &x) {
  const float *a = w.row<float>(x.a);
  bool flushes = x.mode;
  eachLane<float>(w, x.d, [=](int n) {
    float result = float(function(flushes ? flush(a[n]) : a[n]));
    return canonical(flushes ? flush(result) : result);
  });
}
template <auto function> void ofDouble(Warp &w, const Instruction &x) {
  const double *a = w.row<double>(x.a);
  eachLane<double>(w, x.d, [=](int n) { return function(a[n]); });
}
template <auto function> void ofHalf(Warp &w, const Instruction &x) {
  const Half *a = w.row<Half>(x.a);
  eachLane<Half>(w, x.d, [=](int n) {
    return Half{roundHalf(function(double(toFloat(a[n]))))};
  });
}
template <auto function> void ofBFloat(Warp &w, const Instruction &x) {
  const BFloat *a = w.row<BFloat>(x.a);
  eachLane<BFloat>(w, x.d, [=](int n) {
    return BFloat{roundBFloat(function(double(toFloat(a[n]))))};
  });
}
template <auto function, typename T>
void ofPair(Warp &w, const Instruction &x) {
  const uint32_t *a = w.row<uint32_t>(x.a);
  auto one = [](uint32_t bits) {
    double value = function(double(toFloat(T{uint16_t(bits)})));
    return uint32_t(std::is_same_v<T, Half> ? roundHalf(value)
                                            : roundBFloat(value));
  };
  eachLane<uint32_t>(w, x.d,
                     [=](int n) { return one(a[n]) | one(a[n] >> 16) << 16; });
}

template <auto function> Build functionOf() {
  return [](const Match &m, Operands &o) {
    Type type = Type::F32;
    for (std::string_view name : {"f64", "f16", "bf16", "f16x2", "bf16x2"})
      if (m.has(name))
        type = *typeNamed(name);
    o.expect(2);
    o.x.d = o.result(0, bytesOf(type));
    o.x.a = o.source(1, type);
    o.x.mode = m.has("ftz");
    switch (type) {
    case Type::F64:
      o.x.run = ofDouble<function>;
      break;
    case Type::F16:
      o.x.run = ofHalf<function>;
      break;
    case Type::BF16:
      o.x.run = ofBFloat<function>;
      break;
    case Type::F16x2:
      o.x.run = ofPair<function, Half>;
      break;
    case Type::BF16x2:
      o.x.run = ofPair<function, BFloat>;
      break;
    default:
      o.x.run = ofFloat<function>;
    }
  };
}

} // namespace

void gpuemu::addFunctionForms(FormTable &t) {
  t.add("ex2.approx.[ftz].f32", functionOf<exp2Of>());
  t.add("ex2.approx.(f16|f16x2)", functionOf<exp2Of>());
  t.add("ex2.approx.ftz.(bf16|bf16x2)", functionOf<exp2Of>());
  t.add("lg2.approx.[ftz].f32", functionOf<log2Of>());
  t.add("sin.approx.[ftz].f32", functionOf<sinOf>());
  t.add("cos.approx.[ftz].f32", functionOf<cosOf>());
  t.add("tanh.approx.(f32|f16|f16x2|bf16|bf16x2)", functionOf<tanhOf>());
  t.add("rsqrt.approx.[ftz].(f32|f64)", functionOf<rsqrtOf>());
}
