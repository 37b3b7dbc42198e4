//===- Compare.cpp - Comparisons and selections -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ops/Lanes.h"
#include "ops/Number.h"
#include "ptx/Forms.h"

using namespace gpuemu;

namespace {

constexpr auto equal = [](auto a, auto b) { return a == b; };
constexpr auto less = [](auto a, auto b) { return a < b; };
constexpr auto lessOrEqual = [](auto a, auto b) { return a <= b; };
constexpr auto unordered = [](auto a, auto b) { return a != a || b != b; };
constexpr auto lessOrGreater = [](auto a, auto b) { return a < b || b < a; };

/// How operands become numbers that can be compared.
template <typename T> T number(T value) { return value; }
float number(Half value) { return toFloat(value); }
float number(BFloat value) { return toFloat(value); }

template <typename T> T flushedOf(T value) { return flush(value); }
Half flushedOf(Half value) {
  return (value.bits & 0x7c00) == 0 ? Half{uint16_t(value.bits & 0x8000)}
                                    : value;
}
BFloat flushedOf(BFloat value) { return value; }

constexpr uint8_t swapped = 1, inverted = 2, flushes = 4;

/// `mode` swaps the operands or negates the relation: five relations make all.
template <typename T, auto relation, bool flush>
uint32_t compare(Warp &w, const Instruction &x) {
  const T *a = w.row<T>(x.a), *b = w.row<T>(x.b);
  if (x.mode & swapped)
    std::swap(a, b);
  alignas(64) uint32_t bit[32];
  GPUEMU_LANES {
    T p = a[n], q = b[n];
    if constexpr (flush) {
      p = flushedOf(p);
      q = flushedOf(q);
    }
    bit[n] = uint32_t(relation(number(p), number(q))) << n;
  }
  uint32_t mask = 0;
  for (int n = 0; n < 32; ++n)
    mask |= bit[n];
  return x.mode & inverted ? ~mask : mask;
}

void setPredicate(Warp &w, uint32_t row, uint32_t value) {
  if (row == noRow)
    return;
  uint32_t &d = w.predicate(row);
  d = (d & ~w.active) | (value & w.active);
}

/// `count`: 0 no operation with the predicate c, 1 and, 2 or, 3 xor.
uint32_t combined(Warp &w, const Instruction &x, uint32_t mask) {
  if (x.count == 0)
    return mask;
  uint32_t c = w.predicate(x.c) ^ (x.negated ? allLanes : 0);
  return x.count == 1 ? mask & c : x.count == 2 ? mask | c : mask ^ c;
}

template <typename T, auto relation, bool flush>
void setPredicates(Warp &w, const Instruction &x) {
  uint32_t mask = compare<T, relation, flush>(w, x);
  uint32_t p = combined(w, x, mask), q = combined(w, x, ~mask);
  setPredicate(w, x.d, p);
  setPredicate(w, x.d2, q);
}
/// Of pairs: the result of the low halves and of the high ones.
template <typename T, auto relation>
void setPairPredicates(Warp &w, const Instruction &x) {
  const uint32_t *a = w.row<uint32_t>(x.a), *b = w.row<uint32_t>(x.b);
  if (x.mode & swapped)
    std::swap(a, b);
  uint32_t masks[2] = {0, 0};
  for (int n = 0; n < 32; ++n)
    for (int half = 0; half < 2; ++half) {
      T p{uint16_t(a[n] >> 16 * half)}, q{uint16_t(b[n] >> 16 * half)};
      if (x.mode & flushes) {
        p = flushedOf(p);
        q = flushedOf(q);
      }
      masks[half] |= uint32_t(relation(number(p), number(q))) << n;
    }
  if (x.mode & inverted) {
    masks[0] = ~masks[0];
    masks[1] = ~masks[1];
  }
  uint32_t p = combined(w, x, masks[0]), q = combined(w, x, masks[1]);
  setPredicate(w, x.d, p);
  setPredicate(w, x.d2, q);
}
/// set: all ones (or 1.0) and 0 instead of a predicate.
template <typename T, auto relation, bool flush>
void setWords(Warp &w, const Instruction &x) {
  uint32_t mask = combined(w, x, compare<T, relation, flush>(w, x));
  uint32_t yes = uint32_t(x.value);
  eachLane<uint32_t>(w, x.d, [=](int n) { return mask >> n & 1 ? yes : 0u; });
}

struct Relation {
  enum Kind : uint8_t { Equal, Less, LessOrEqual, Unordered, NotEqual } kind;
  uint8_t mode;
};
/// `isFloat`: a NaN makes the relations false, those that end in `u` true.
Relation relationNamed(std::string_view name, bool isFloat) {
  using R = Relation;
  if (name == "eq")
    return {R::Equal, 0};
  if (name == "ne")
    return isFloat ? Relation{R::NotEqual, 0} : Relation{R::Equal, inverted};
  if (name == "lt" || name == "lo")
    return {R::Less, 0};
  if (name == "gt" || name == "hi")
    return {R::Less, swapped};
  if (name == "le" || name == "ls")
    return {R::LessOrEqual, 0};
  if (name == "ge" || name == "hs")
    return {R::LessOrEqual, swapped};
  if (name == "equ")
    return {R::NotEqual, inverted};
  if (name == "neu")
    return {R::Equal, inverted};
  if (name == "ltu")
    return {R::LessOrEqual, swapped | inverted};
  if (name == "leu")
    return {R::Less, swapped | inverted};
  if (name == "gtu")
    return {R::LessOrEqual, inverted};
  if (name == "geu")
    return {R::Less, inverted};
  return {R::Unordered, uint8_t(name == "num" ? inverted : 0)};
}

enum class Result : uint8_t { Predicates, Words };

template <typename T, auto relation, bool flush> Handler pick(Result result) {
  return result == Result::Words ? setWords<T, relation, flush>
                                 : setPredicates<T, relation, flush>;
}
template <typename T, bool flush>
Handler handlerOf(Relation::Kind kind, Result result) {
  switch (kind) {
  case Relation::Equal:
    return pick<T, equal, flush>(result);
  case Relation::Less:
    return pick<T, less, flush>(result);
  case Relation::LessOrEqual:
    return pick<T, lessOrEqual, flush>(result);
  case Relation::Unordered:
    return pick<T, unordered, flush>(result);
  default:
    return pick<T, lessOrGreater, flush>(result);
  }
}
template <typename T> Handler pairHandlerOf(Relation::Kind kind) {
  switch (kind) {
  case Relation::Equal:
    return setPairPredicates<T, equal>;
  case Relation::Less:
    return setPairPredicates<T, less>;
  case Relation::LessOrEqual:
    return setPairPredicates<T, lessOrEqual>;
  case Relation::Unordered:
    return setPairPredicates<T, unordered>;
  default:
    return setPairPredicates<T, lessOrGreater>;
  }
}

Handler handlerFor(Type type, Relation::Kind kind, bool flush, Result result) {
  switch (type) {
  case Type::F32:
    return flush ? handlerOf<float, true>(kind, result)
                 : handlerOf<float, false>(kind, result);
  case Type::F64:
    return handlerOf<double, false>(kind, result);
  case Type::F16:
    return flush ? handlerOf<Half, true>(kind, result)
                 : handlerOf<Half, false>(kind, result);
  case Type::BF16:
    return handlerOf<BFloat, false>(kind, result);
  case Type::F16x2:
    return pairHandlerOf<Half>(kind);
  case Type::BF16x2:
    return pairHandlerOf<BFloat>(kind);
  default: {
    Handler handler = nullptr;
    withInteger(type, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (sizeof(T) >= 2)
        handler = handlerOf<T, false>(kind, result);
    });
    return handler;
  }
  }
}

bool isFloatOrPair(Type type) {
  return type >= Type::F16 && type <= Type::BF16x2;
}

/// The parts of a form: relation, operation, ftz, and the type.
void comparison(const Match &m, Operands &o, Type type, Result result) {
  std::string_view operation;
  for (std::string_view name : {"and", "or", "xor"})
    if (m.has(name))
      operation = name;
  o.expect(operation.empty() ? 3 : 4);
  Relation relation = relationNamed(m[0], isFloatOrPair(type));
  o.x.mode = uint8_t(relation.mode | (m.has("ftz") ? flushes : 0));
  o.x.a = o.source(1, type);
  o.x.b = o.source(2, type);
  o.x.count = 0;
  if (!operation.empty()) {
    o.x.c = o.predicateSource(3, o.x.negated);
    o.x.count = operation == "and" ? 1 : operation == "or" ? 2 : 3;
  }
  o.x.run = handlerFor(type, relation.kind, m.has("ftz"), result);
}

template <typename T> void selectRow(Warp &w, const Instruction &x) {
  const T *a = w.row<T>(x.a), *b = w.row<T>(x.b);
  uint32_t c = w.predicate(x.c) ^ (x.negated ? allLanes : 0);
  eachLane<T>(w, x.d, [=](int n) { return c >> n & 1 ? a[n] : b[n]; });
}

} // namespace

void gpuemu::addCompareForms(FormTable &t) {
  const std::string operation = ".[and|or|xor]";
  const std::string signs = "(eq|ne|lt|le|gt|ge)" + operation;
  const std::string unsignedSigns =
      "(eq|ne|lt|le|gt|ge|lo|ls|hi|hs)" + operation;
  const std::string floats =
      "(eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan)" + operation;
  for (const std::string &form :
       {"(eq|ne)" + operation + ".(b16|b32|b64)", signs + ".(s16|s32|s64)",
        unsignedSigns + ".(u16|u32|u64)", floats + ".[ftz].(f32|f16|f16x2)",
        floats + ".(f64|bf16|bf16x2)"}) {
    t.add("setp." + form, [](const Match &m, Operands &o) {
      // Where there is a part for .ftz, it stands before the type.
      Type type = m.type(m.has("ftz") || m[2].empty() ? 3 : 2);
      comparison(m, o, type, Result::Predicates);
      o.x.d = o.predicateResult(0);
      o.x.d2 = o.secondPredicate(0);
    });
  }
  for (const std::string &form :
       {"(eq|ne)" + operation + ".(u32|s32|f32).(b16|b32|b64)",
        signs + ".(u32|s32|f32).(s16|s32|s64)",
        unsignedSigns + ".(u32|s32|f32).(u16|u32|u64)",
        floats + ".[ftz].(u32|s32|f32).(f32|f16)",
        floats + ".(u32|s32|f32).(f64|bf16)"}) {
    bool flushed = form.find("[ftz]") != std::string::npos;
    t.add("set." + form, [flushed](const Match &m, Operands &o) {
      size_t at = flushed ? 3 : 2;
      comparison(m, o, m.type(at + 1), Result::Words);
      o.x.d = o.result(0, 4);
      o.x.value = m.type(at) == Type::F32 ? floatToBits(1.0f) : ~uint32_t(0);
    });
  }
  t.add("selp.(b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64)",
        [](const Match &m, Operands &o) {
          Type type = m.type(0);
          o.expect(4);
          o.x.d = o.result(0, bytesOf(type));
          o.x.a = o.source(1, type);
          o.x.b = o.source(2, type);
          o.x.c = o.predicateSource(3, o.x.negated);
          o.x.run = bytesOf(type) == 8   ? selectRow<uint64_t>
                    : bytesOf(type) == 4 ? selectRow<uint32_t>
                                         : selectRow<uint16_t>;
        });
}
