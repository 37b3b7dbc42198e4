//===- Atomic.cpp - atom and red --------------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "machine/Access.h"
#include "ops/Number.h"
#include "ptx/Forms.h"

#include <cstring>
#include <mutex>

using namespace gpuemu;

namespace {

/// Kernels of several streams may run at once.
std::mutex atomics;

enum Operation : uint8_t {
  Add,
  Minimum,
  Maximum,
  And,
  Or,
  Xor,
  Exchange,
  CompareAndSwap,
  Increment,
  Decrement,
};
constexpr std::string_view names[] = {"add", "min",  "max", "and", "or",
                                      "xor", "exch", "cas", "inc", "dec"};

template <typename T> T applied(Operation operation, T old, T b, T c) {
  using U = std::make_unsigned_t<T>;
  switch (operation) {
  case Add:
    return T(U(old) + U(b));
  case Minimum:
    return std::min(old, b);
  case Maximum:
    return std::max(old, b);
  case And:
    return old & b;
  case Or:
    return old | b;
  case Xor:
    return old ^ b;
  case Exchange:
    return b;
  case CompareAndSwap:
    return old == b ? c : old;
  case Increment:
    return U(old) >= U(b) ? T(0) : T(U(old) + 1);
  case Decrement:
    return old == 0 || U(old) > U(b) ? b : T(U(old) - 1);
  }
  return old;
}

/// Single precision in global memory flushes subnormal numbers, unlike in
/// shared memory.
float applied(Operation, Space space, float old, float b) {
  return space == Space::Global ? canonical(flush(flush(old) + flush(b)))
                                : canonical(old + b);
}
double applied(Operation, Space, double old, double b) { return old + b; }
template <typename T> T narrowSum(T a, T b) {
  float sum = toFloat(a) + toFloat(b);
  if constexpr (std::is_same_v<T, Half>)
    return toHalf(sum);
  else
    return toBFloat(sum);
}
Half applied(Operation, Space, Half old, Half b) { return narrowSum(old, b); }
BFloat applied(Operation, Space, BFloat old, BFloat b) {
  return narrowSum(old, b);
}
template <typename T> struct Pair {
  T low, high;
};
template <typename T>
Pair<T> applied(Operation, Space, Pair<T> old, Pair<T> b) {
  return {narrowSum(old.low, b.low), narrowSum(old.high, b.high)};
}
template <typename T>
  requires std::is_integral_v<T>
T applied(Operation operation, Space, T old, T b, T c) {
  return applied(operation, old, b, c);
}

template <typename T> void atomic(Warp &w, const Instruction &x) {
  std::lock_guard guard(atomics);
  GPUEMU_ACTIVE(w.active) {
    Reached found = reach(w, x, n, x.space, addressOf(w, x, n), sizeof(T),
                          AccessKind::Atomic);
    T old;
    memcpy(&old, found.data, sizeof(T));
    T b = w.row<T>(x.b)[n], result;
    auto operation = Operation(x.mode);
    if constexpr (std::is_integral_v<T>)
      result = applied(operation, found.space, old, b,
                       operation == CompareAndSwap ? w.row<T>(x.c)[n] : b);
    else
      result = applied(operation, found.space, old, b);
    memcpy(found.data, &result, sizeof(T));
    if (x.d != noRow)
      w.row<T>(x.d)[n] = old;
  }
}

Handler handlerFor(Type type) {
  switch (type) {
  case Type::F32:
    return atomic<float>;
  case Type::F64:
    return atomic<double>;
  case Type::F16:
    return atomic<Half>;
  case Type::BF16:
    return atomic<BFloat>;
  case Type::F16x2:
    return atomic<Pair<Half>>;
  case Type::BF16x2:
    return atomic<Pair<BFloat>>;
  default: {
    Handler handler = nullptr;
    withInteger(type, [&](auto zero) {
      if constexpr (sizeof(zero) >= 2)
        handler = atomic<decltype(zero)>;
    });
    return handler;
  }
  }
}

/// The space and the operation stand at fixed parts; the type is the last.
void build(const Match &m, Operands &o, size_t spacePart, bool returns) {
  size_t typePart = spacePart + 2 + (m.has("noftz") ? 1 : 0);
  Type type = m.type(typePart);
  while (names[o.x.mode] != m[spacePart + 1])
    ++o.x.mode;
  size_t at = returns ? 1 : 0;
  bool swaps = o.x.mode == CompareAndSwap;
  o.expect(at + (swaps ? 3 : 2));
  Space space = m[spacePart] == "global" ? Space::Global
                : m[spacePart].empty()   ? Space::Generic
                                         : Space::Shared;
  if (returns)
    o.x.d = o.result(0, bytesOf(type));
  o.address(at, space);
  o.x.b = o.source(at + 1, type);
  if (swaps)
    o.x.c = o.source(at + 2, type);
  if (o.x.space != Space::Shared)
    o.markAtomic();
  o.x.run = handlerFor(type);
}

} // namespace

void gpuemu::addAtomicForms(FormTable &t) {
  const std::string order =
      ".[relaxed|acquire|release|acq_rel]"
      ".[cta|cluster|gpu|sys].[global|shared|shared::cta]";
  for (bool returns : {true, false}) {
    auto add = [&](const std::string &rest) {
      t.add(
          (returns ? "atom" : "red") + order + rest,
          [returns](const Match &m, Operands &o) { build(m, o, 2, returns); });
    };
    add(".add.(u32|s32|u64|f32|f64)");
    add(".add.noftz.(f16|f16x2|bf16|bf16x2)");
    add(".(min|max).(u32|s32|u64|s64)");
    add(".(and|or|xor).(b32|b64)");
    add(".(inc|dec).u32");
    if (returns) {
      add(".exch.(b32|b64)");
      add(".cas.(b16|b32|b64)");
    }
  }
}
