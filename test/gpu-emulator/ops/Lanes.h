//===- Lanes.h - Handlers of a row of values --------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_OPS_LANES_H
#define PARTITA_TEST_GPUEMULATOR_OPS_LANES_H

#include "machine/Warp.h"

namespace gpuemu {

/// Handlers that apply a function without state to each lane.
template <typename D, typename A, auto function>
void unary(Warp &w, const Instruction &x) {
  const A *a = w.row<A>(x.a);
  eachLane<D>(w, x.d, [=](int n) { return D(function(a[n])); });
}
template <typename D, typename A, typename B, auto function>
void binary(Warp &w, const Instruction &x) {
  const A *a = w.row<A>(x.a);
  const B *b = w.row<B>(x.b);
  eachLane<D>(w, x.d, [=](int n) { return D(function(a[n], b[n])); });
}
template <typename D, typename A, typename B, typename C, auto function>
void ternary(Warp &w, const Instruction &x) {
  const A *a = w.row<A>(x.a);
  const B *b = w.row<B>(x.b);
  const C *c = w.row<C>(x.c);
  eachLane<D>(w, x.d, [=](int n) { return D(function(a[n], b[n], c[n])); });
}

} // namespace gpuemu

#endif // PARTITA_TEST_GPUEMULATOR_OPS_LANES_H
