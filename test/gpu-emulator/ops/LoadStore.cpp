//===- LoadStore.cpp - ld and st --------------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "machine/Access.h"
#include "ptx/Forms.h"

#include <cstring>

using namespace gpuemu;

namespace {

/// Whether the lanes read or write `bytes` each, one behind the other, in
/// global memory. `first` is the first lane's address then.
bool isContiguous(Warp &w, const Instruction &x, uint64_t bytes,
                  uint64_t &first) {
  if (w.active != allLanes || !x.wide || x.a == noRow ||
      (x.space != Space::Global && x.space != Space::Generic))
    return false;
  const uint64_t *a = w.row<uint64_t>(x.a);
  first = a[0] + uint64_t(x.value);
  uint64_t differences = 0, base = a[0];
  GPUEMU_LANES differences |= a[n] - base - uint64_t(n) * bytes;
  return differences == 0 && (first & ~windowMask) == 0 && first % bytes == 0;
}

/// Where a lane's bytes in shared memory are, without the checks that need more
/// than a glance; null where these must be made.
uint8_t *glanceShared(Warp &w, const Instruction &x, unsigned lane,
                      unsigned bytes, bool reads) {
  Block &block = *w.block;
  if (x.space != Space::Shared || block.races)
    return nullptr;
  uint64_t address = addressOf(w, x, lane);
  if (address % bytes || address >= block.shared.size() ||
      bytes > block.shared.size() - address)
    return nullptr;
  if (block.checkWritten) {
    uint8_t *written = &block.sharedWritten[address];
    if (!reads)
      memset(written, 1, bytes);
    else if (firstUnwritten(written, bytes) != bytes)
      return nullptr;
  }
  return &block.shared[address];
}

/// A value of type T in a register of type R: extended as T is signed or not.
template <typename T, typename R> R extended(T value) {
  if constexpr (std::is_signed_v<T>)
    return R(std::make_signed_t<R>(value));
  else
    return R(value);
}

template <typename T, typename R> void load(Warp &w, const Instruction &x) {
  const uint32_t *rows = &w.block->program->lists[x.list];
  unsigned count = x.count, bytes = count * sizeof(T);
  uint64_t first = 0;
  Reached all;
  if (isContiguous(w, x, bytes, first))
    all = tryGlobal(w, x, first, 32 * uint64_t(bytes), AccessKind::Read);
  if (const uint8_t *data = all.data) {
    for (unsigned i = 0; i < count; ++i) {
      R *d = w.row<R>(rows[i]);
      GPUEMU_LANES {
        T value;
        memcpy(&value, data + (unsigned(n) * count + i) * sizeof(T), sizeof(T));
        d[n] = extended<T, R>(value);
      }
    }
    return;
  }
  GPUEMU_ACTIVE(w.active) {
    const uint8_t *data = glanceShared(w, x, n, bytes, true);
    if (!data)
      data =
          reach(w, x, n, x.space, addressOf(w, x, n), bytes, AccessKind::Read)
              .data;
    T values[8];
    memcpy(values, data, bytes);
    for (unsigned i = 0; i < count; ++i)
      w.row<R>(rows[i])[n] = extended<T, R>(values[i]);
  }
}

template <typename T, typename R> void store(Warp &w, const Instruction &x) {
  const uint32_t *rows = &w.block->program->lists[x.list];
  unsigned count = x.count, bytes = count * sizeof(T);
  uint64_t first = 0;
  Reached all;
  if (isContiguous(w, x, bytes, first))
    all = tryGlobal(w, x, first, 32 * uint64_t(bytes), AccessKind::Write);
  if (all.data) {
    for (unsigned i = 0; i < count; ++i) {
      const R *s = w.row<R>(rows[i]);
      GPUEMU_LANES {
        T value = T(s[n]);
        memcpy(all.data + (unsigned(n) * count + i) * sizeof(T), &value,
               sizeof(T));
      }
    }
    if (all.written)
      memset(all.written, 1, 32 * size_t(bytes));
    return;
  }
  GPUEMU_ACTIVE(w.active) {
    T values[8];
    for (unsigned i = 0; i < count; ++i)
      values[i] = T(w.row<R>(rows[i])[n]);
    if (uint8_t *data = glanceShared(w, x, n, bytes, false)) {
      memcpy(data, values, bytes);
      continue;
    }
    Reached found =
        reach(w, x, n, x.space, addressOf(w, x, n), bytes, AccessKind::Write);
    memcpy(found.data, values, bytes);
    if (found.written)
      memset(found.written, 1, bytes);
  }
}

template <typename T> Handler accessFor(unsigned registerBytes, bool isStore) {
  switch (registerBytes) {
  case 1:
    return isStore ? store<T, uint8_t> : load<T, uint8_t>;
  case 2:
    return isStore ? store<T, uint16_t> : load<T, uint16_t>;
  case 4:
    return isStore ? store<T, uint32_t> : load<T, uint32_t>;
  default:
    return isStore ? store<T, uint64_t> : load<T, uint64_t>;
  }
}

Space spaceIn(const Match &m) {
  for (std::string_view name :
       {"global", "const", "local", "param", "param::entry", "param::func",
        "shared", "shared::cta"})
    if (m.has(name))
      return name == "global"        ? Space::Global
             : name == "const"       ? Space::Const
             : name == "local"       ? Space::Local
             : name == "param::func" ? Space::Local
             : name[0] == 'p'        ? Space::Param
                                     : Space::Shared;
  return Space::Generic;
}

/// Without a sign the bits of a float: they are moved and not computed with.
Type asInteger(Type type) {
  return type == Type::F32 ? Type::B32 : type == Type::F64 ? Type::B64 : type;
}

/// Constants of stores are rows of the type's size.
void access(const Match &m, Operands &o, size_t typePart, bool isStore) {
  o.expect(2);
  Type type = m.type(typePart);
  unsigned count = m.has("v2") ? 2 : m.has("v4") ? 4 : m.has("v8") ? 8 : 1;
  if (count * bytesOf(type) > 32)
    o.fail("more than 32 bytes");
  Space space = spaceIn(m);
  o.address(isStore ? 0 : 1, space);
  if (o.x.space == Space::Const)
    o.x.space = Space::Global;
  const OperandText &operand = o[isStore ? 1 : 0];
  std::vector<const OperandText *> elements;
  if (operand.kind == OperandText::Kind::Vector)
    for (const OperandText &element : operand.elements)
      elements.push_back(&element);
  else
    elements.push_back(&operand);
  if (elements.size() != count)
    o.fail("a vector of " + std::to_string(count) + " is expected");
  // Registers of different sizes in one vector do not occur.
  std::vector<uint32_t> rows;
  unsigned size = 0;
  for (const OperandText *element : elements)
    size = std::max(size, o.registerBytes(*element));
  if (size == 0)
    size = std::max(bytesOf(type), isStore ? 1u : 2u);
  Type sized = size == 1   ? Type::B8
               : size == 2 ? Type::B16
               : size == 4 ? Type::B32
                           : Type::B64;
  if (size < bytesOf(type))
    o.fail("the register is too small");
  for (const OperandText *element : elements) {
    if (isStore)
      rows.push_back(element->kind == OperandText::Kind::Register
                         ? o.source(*element, sized)
                     : element->kind == OperandText::Kind::Integer
                         ? o.constantRow(element->bits, size)
                         : o.source(*element, type));
    else
      rows.push_back(o.result(*element, size));
  }
  o.x.list = o.list(rows);
  o.x.count = uint8_t(count);
  withInteger(asInteger(type), [&](auto zero) {
    o.x.run = accessFor<decltype(zero)>(size, isStore);
  });
}

} // namespace

void gpuemu::addMemoryForms(FormTable &t) {
  const std::string types =
      ".[v2|v4|v8].(b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64)";
  const std::string spaces =
      ".[global|shared|shared::cta|local|const|param|param::entry|param::func]";
  const std::string hints =
      ".[ca|cg|cs|lu|cv|wb|wt].[L1::evict_normal|L1::evict_unchanged|"
      "L1::evict_first|L1::evict_last|L1::no_allocate].[L2::64B|L2::128B|"
      "L2::256B]";
  for (bool isStore : {false, true}) {
    std::string name = isStore ? "st" : "ld";
    t.add(name + ".[weak|volatile|mmio]" + spaces + hints + types,
          [isStore](const Match &m, Operands &o) { access(m, o, 6, isStore); });
    t.add(name + (isStore ? ".(relaxed|release)" : ".(relaxed|acquire)") +
              ".(cta|cluster|gpu|sys)" + spaces + types,
          [isStore](const Match &m, Operands &o) { access(m, o, 4, isStore); });
  }
  // Constant for the kernel's time; the emulator does not hold it to that.
  t.add("ld.global.[ca|cg|cs].nc.[L1::evict_normal|L1::evict_unchanged|"
        "L1::evict_first|L1::evict_last|L1::no_allocate].[L2::64B|L2::128B|"
        "L2::256B]" +
            types,
        [](const Match &m, Operands &o) { access(m, o, 6, false); });
  auto nothing = [](const Match &, Operands &o) {
    o.x.run = [](Warp &, const Instruction &) {};
  };
  t.add("membar.(cta|gl|sys)", nothing);
  t.add("fence.[sc|acq_rel|acquire|release].(cta|cluster|gpu|sys)", nothing);
  t.add("prefetch.[global|local].(L1|L2)", nothing);
}
