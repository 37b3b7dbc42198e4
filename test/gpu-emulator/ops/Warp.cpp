//===- Warp.cpp - Lanes that exchange values --------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The lanes that a handler here finds active are those of the member mask: they
// have met at the instruction (Flow::Together). The mask is in row `e`.
//
//===----------------------------------------------------------------------===//

#include "machine/Warp.h"
#include "machine/Error.h"
#include "ptx/Forms.h"

#include <algorithm>
#include <cstring>

using namespace gpuemu;

namespace {

enum ShuffleMode : uint8_t { Up, Down, Butterfly, Index };

void shuffle(Warp &w, const Instruction &x) {
  const uint32_t *a = w.row<uint32_t>(x.a), *b = w.row<uint32_t>(x.b),
                 *c = w.row<uint32_t>(x.c);
  uint32_t in[32], out[32] = {}, inRange = 0;
  memcpy(in, a, sizeof in);
  GPUEMU_ACTIVE(w.active) {
    int lane = int(n), by = int(b[n] & 31);
    int clamp = int(c[n] & 31), segment = int(c[n] >> 8 & 31);
    int most = (lane & segment) | (clamp & ~segment);
    int least = lane & segment;
    int from = 0;
    bool valid = false;
    switch (x.mode) {
    case Up:
      from = lane - by;
      valid = from >= most;
      break;
    case Down:
      from = lane + by;
      valid = from <= most;
      break;
    case Butterfly:
      from = lane ^ by;
      valid = from <= most;
      break;
    default:
      from = least | (by & ~segment);
      valid = from <= most;
    }
    if (!valid)
      from = lane;
    if (!(w.active >> from & 1))
      failAt(LaunchFailed,
             "a shuffle from lane " + std::to_string(from) +
                 ", which does not take part",
             w, x, n);
    out[n] = in[from];
    inRange |= uint32_t(valid) << n;
  }
  uint32_t *d = w.row<uint32_t>(x.d);
  GPUEMU_ACTIVE(w.active) d[n] = out[n];
  if (x.d2 != noRow) {
    uint32_t &p = w.predicate(x.d2);
    p = (p & ~w.active) | (inRange & w.active);
  }
}

uint32_t votes(Warp &w, const Instruction &x) {
  return (w.predicate(x.a) ^ (x.negated ? allLanes : 0)) & w.active;
}
void ballot(Warp &w, const Instruction &x) {
  uint32_t value = votes(w, x);
  eachLane<uint32_t>(w, x.d, [=](int) { return value; });
}
/// `mode`: 0 all, 1 any, 2 uni.
void vote(Warp &w, const Instruction &x) {
  uint32_t value = votes(w, x);
  bool all = value == w.active, any = value != 0;
  bool result = x.mode == 0 ? all : x.mode == 1 ? any : all || !any;
  uint32_t &d = w.predicate(x.d);
  d = (d & ~w.active) | (result ? w.active : 0);
}

template <typename T> void matchAny(Warp &w, const Instruction &x) {
  const T *a = w.row<T>(x.a);
  uint32_t out[32] = {};
  GPUEMU_ACTIVE(w.active) {
    T mine = a[n];
    for (uint32_t i = 0; i < 32; ++i)
      out[n] |= uint32_t((w.active >> i & 1) && a[i] == mine) << i;
  }
  uint32_t *d = w.row<uint32_t>(x.d);
  GPUEMU_ACTIVE(w.active) d[n] = out[n];
}
template <typename T> void matchAll(Warp &w, const Instruction &x) {
  const T *a = w.row<T>(x.a);
  T first = a[__builtin_ctz(w.active)];
  bool same = true;
  GPUEMU_ACTIVE(w.active) same &= a[n] == first;
  uint32_t value = same ? w.active : 0;
  eachLane<uint32_t>(w, x.d, [=](int) { return value; });
  if (x.d2 != noRow) {
    uint32_t &p = w.predicate(x.d2);
    p = (p & ~w.active) | value;
  }
}

/// `mode`: 0 add, 1 min, 2 max, 3 and, 4 or, 5 xor.
template <typename T> void reduce(Warp &w, const Instruction &x) {
  const T *a = w.row<T>(x.a);
  T result = a[__builtin_ctz(w.active)];
  GPUEMU_ACTIVE(w.active & (w.active - 1)) {
    switch (x.mode) {
    case 0:
      result = T(uint32_t(result) + uint32_t(a[n]));
      break;
    case 1:
      result = std::min(result, a[n]);
      break;
    case 2:
      result = std::max(result, a[n]);
      break;
    case 3:
      result &= a[n];
      break;
    case 4:
      result |= a[n];
      break;
    default:
      result ^= a[n];
    }
  }
  eachLane<T>(w, x.d, [=](int) { return result; });
}

void activeMask(Warp &w, const Instruction &x) {
  uint32_t value = w.active;
  eachLane<uint32_t>(w, x.d, [=](int) { return value; });
}
void elect(Warp &w, const Instruction &x) {
  uint32_t leader = uint32_t(__builtin_ctz(w.active));
  eachLane<uint32_t>(w, x.d, [=](int) { return leader; });
  if (x.d2 != noRow) {
    uint32_t &p = w.predicate(x.d2);
    p = (p & ~w.active) | (1u << leader);
  }
}
/// A barrier of the warp's lanes orders what they do in memory.
void synchronise(Warp &w, const Instruction &) { ++w.epoch; }

void together(Operands &o, size_t maskOperand) {
  o.x.flow = Flow::Together;
  o.x.e = o.source(maskOperand, Type::B32);
}

} // namespace

void gpuemu::addWarpForms(FormTable &t) {
  t.add("shfl.sync.(up|down|bfly|idx).b32", [](const Match &m, Operands &o) {
    o.expect(5);
    o.x.mode = m[1] == "up"     ? Up
               : m[1] == "down" ? Down
               : m[1] == "bfly" ? Butterfly
                                : Index;
    o.x.d = o.result(0, 4);
    o.x.d2 = o.secondPredicate(0);
    o.x.a = o.source(1, Type::B32);
    o.x.b = o.source(2, Type::B32);
    o.x.c = o.source(3, Type::B32);
    together(o, 4);
    o.x.run = shuffle;
  });
  t.add("vote.sync.(all|any|uni).pred", [](const Match &m, Operands &o) {
    o.expect(3);
    o.x.mode = m[1] == "all" ? 0 : m[1] == "any" ? 1 : 2;
    o.x.d = o.predicateResult(0);
    if (o.x.d == noRow)
      o.fail("the result is not used");
    o.x.a = o.predicateSource(1, o.x.negated);
    together(o, 2);
    o.x.run = vote;
  });
  t.add("vote.sync.ballot.b32", [](const Match &, Operands &o) {
    o.expect(3);
    o.x.d = o.result(0, 4);
    o.x.a = o.predicateSource(1, o.x.negated);
    together(o, 2);
    o.x.run = ballot;
  });
  t.add("match.(any|all).sync.(b32|b64)", [](const Match &m, Operands &o) {
    o.expect(3);
    bool wide = m.type(2) == Type::B64;
    o.x.d = o.result(0, 4);
    o.x.d2 = o.secondPredicate(0);
    o.x.a = o.source(1, m.type(2));
    together(o, 2);
    if (m[0] == "any")
      o.x.run = wide ? matchAny<uint64_t> : matchAny<uint32_t>;
    else
      o.x.run = wide ? matchAll<uint64_t> : matchAll<uint32_t>;
  });
  auto redux = [](const Match &m, Operands &o) {
    static constexpr std::string_view names[] = {"add", "min", "max",
                                                 "and", "or",  "xor"};
    o.expect(3);
    while (names[o.x.mode] != m[1])
      ++o.x.mode;
    o.x.d = o.result(0, 4);
    o.x.a = o.source(1, m.type(2));
    together(o, 2);
    o.x.run = m.type(2) == Type::S32 ? reduce<int32_t> : reduce<uint32_t>;
  };
  t.add("redux.sync.(add|min|max).(u32|s32)", redux);
  t.add("redux.sync.(and|or|xor).b32", redux);
  t.add("activemask.b32", [](const Match &, Operands &o) {
    o.expect(1);
    o.x.d = o.result(0, 4);
    o.x.run = activeMask;
  });
  t.add("elect.sync", [](const Match &, Operands &o) {
    o.expect(2);
    o.x.d = o.result(0, 4);
    o.x.d2 = o.secondPredicate(0);
    together(o, 1);
    o.x.run = elect;
  });
  t.add("bar.warp.sync", [](const Match &, Operands &o) {
    o.expect(1);
    together(o, 0);
    o.x.run = synchronise;
  });
}
