//===- Move.cpp - Moves, packing and addresses ------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ops/Lanes.h"
#include "ptx/Forms.h"

#include <cstring>

using namespace gpuemu;

namespace {

struct Wide {
  uint64_t low, high;
};
constexpr auto same = [](auto a) { return a; };

Handler copyOf(unsigned bytes) {
  return bytes == 16  ? unary<Wide, Wide, same>
         : bytes == 8 ? unary<uint64_t, uint64_t, same>
         : bytes == 4 ? unary<uint32_t, uint32_t, same>
         : bytes == 2 ? unary<uint16_t, uint16_t, same>
                      : unary<uint8_t, uint8_t, same>;
}

/// Elements of `value` bytes, the first one lowest.
void pack(Warp &w, const Instruction &x) {
  auto each = unsigned(x.value), total = each * x.count;
  const uint32_t *rows = &w.block->program->lists[x.list];
  GPUEMU_ACTIVE(w.active) {
    uint8_t bytes[16];
    for (unsigned i = 0; i < x.count; ++i)
      memcpy(bytes + i * each, w.row<uint8_t>(rows[i]) + n * each, each);
    memcpy(w.row<uint8_t>(x.d) + n * total, bytes, total);
  }
}
void unpack(Warp &w, const Instruction &x) {
  auto each = unsigned(x.value), total = each * x.count;
  const uint32_t *rows = &w.block->program->lists[x.list];
  GPUEMU_ACTIVE(w.active) {
    uint8_t bytes[16];
    memcpy(bytes, w.row<uint8_t>(x.a) + n * total, total);
    for (unsigned i = 0; i < x.count; ++i)
      memcpy(w.row<uint8_t>(rows[i]) + n * each, bytes + i * each, each);
  }
}

Type bitsOf(unsigned bytes) {
  return bytes == 1   ? Type::B8
         : bytes == 2 ? Type::B16
         : bytes == 4 ? Type::B32
                      : Type::B64;
}

void move(const Match &m, Operands &o) {
  using Kind = OperandText::Kind;
  o.expect(2);
  Type type = m.type(0);
  bool unpacks = o[0].kind == Kind::Vector, packs = o[1].kind == Kind::Vector;
  if (!unpacks && !packs) {
    o.x.d = o.result(0, bytesOf(type));
    o.x.a = o.source(1, type);
    o.x.run = copyOf(bytesOf(type));
    return;
  }
  size_t count = o[unpacks ? 0 : 1].elements.size();
  if (unpacks == packs || (count != 2 && count != 4) ||
      bytesOf(type) / count == 0)
    o.fail("a vector of this size cannot be moved");
  unsigned each = bytesOf(type) / unsigned(count);
  o.x.count = uint8_t(count);
  o.x.value = each;
  if (unpacks) {
    o.x.a = o.source(1, type);
    o.x.list = o.list(o.vectorResults(0, each, count));
    o.x.run = unpack;
  } else {
    o.x.d = o.result(0, bytesOf(type));
    o.x.list = o.list(o.vectorSources(1, bitsOf(each), count));
    o.x.run = pack;
  }
}

/// Adds or removes the window of a space.
template <typename T, bool toSpace>
void convertAddress(Warp &w, const Instruction &x) {
  const T *a = w.row<T>(x.a);
  auto window = uint64_t(x.value);
  eachLane<T>(w, x.d, [=](int n) {
    return toSpace ? T(a[n] - window) : T(a[n] + window);
  });
}

uint64_t windowOf(std::string_view space) {
  return space == "shared" || space == "shared::cta" ? sharedWindow
         : space == "local"                          ? localWindow
         : space == "param"                          ? paramWindow
                                                     : 0;
}

void addressForm(const Match &m, Operands &o, bool toSpace) {
  o.expect(2);
  o.x.d = o.result(0, 8);
  o.x.a = o.source(1, Type::U64);
  o.x.value = int64_t(windowOf(m[toSpace ? 1 : 0]));
  o.x.run = toSpace ? convertAddress<uint64_t, true>
                    : convertAddress<uint64_t, false>;
}

void isInSpace(Warp &w, const Instruction &x) {
  const uint64_t *a = w.row<uint64_t>(x.a);
  auto window = uint64_t(x.value);
  eachPredicate(w, x.d, [=](int n) { return (a[n] & ~windowMask) == window; });
}

} // namespace

void gpuemu::addMoveForms(FormTable &t) {
  t.add("mov.(b8|b16|b32|b64|b128|u16|u32|u64|s16|s32|s64|f32|f64)", move);
  // The elements of b128 are registers of 64 bits.
  t.add("cvta.(global|shared|shared::cta|local|const|param).u64",
        [](const Match &m, Operands &o) { addressForm(m, o, false); });
  t.add("cvta.to.(global|shared|shared::cta|local|const|param).u64",
        [](const Match &m, Operands &o) { addressForm(m, o, true); });
  t.add("isspacep.(global|shared|shared::cta|local|param)",
        [](const Match &m, Operands &o) {
          o.expect(2);
          o.x.d = o.predicateResult(0);
          o.x.a = o.source(1, Type::U64);
          o.x.value = int64_t(windowOf(m[0]));
          o.x.run = isInSpace;
        });
}
