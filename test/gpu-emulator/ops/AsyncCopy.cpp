//===- AsyncCopy.cpp - cp.async ---------------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bytes arrive when they are waited for, and no sooner. Until then nothing
// counts as written where they will be.
//
//===----------------------------------------------------------------------===//

#include "machine/Access.h"
#include "machine/Error.h"
#include "ptx/Forms.h"

#include <cstring>

using namespace gpuemu;

namespace {

/// `a`: the place in shared memory; `b` and `count`: that in global memory;
/// `mode`: bytes; `c`: how many of them are read, and the rest is zero.
void copy(Warp &w, const Instruction &x) {
  unsigned bytes = x.mode;
  GPUEMU_ACTIVE(w.active) {
    uint64_t to = sharedAddress(addressOf(w, x, n));
    Reached target =
        reach(w, x, n, Space::Shared, to, bytes, AccessKind::Write);
    uint32_t reads = x.c == noRow ? bytes : w.row<uint32_t>(x.c)[n];
    if (x.e != noRow &&
        (w.predicate(x.e) ^ (x.negated ? allLanes : 0)) >> n & 1)
      reads = 0;
    if (reads > bytes)
      failAt(IllegalAddress, "more bytes to read than to copy", w, x, n);
    AsyncCopy pending;
    pending.to = uint32_t(to);
    pending.bytes.assign(bytes, 0);
    pending.written.assign(bytes, 1);
    if (reads) {
      uint64_t from = w.row<uint64_t>(x.b)[n] + uint64_t(x.d2);
      if (from % bytes)
        failAt(MisalignedAddress, "a misaligned source of cp.async", w, x, n);
      // Bytes that nothing wrote are found where they are used.
      Reached source = reachGlobal(w, x, n, from, reads, AccessKind::Write);
      memcpy(pending.bytes.data(), source.data, reads);
      if (source.written)
        memcpy(pending.written.data(), source.written, reads);
    }
    memset(target.data, 0xff, bytes);
    if (target.written)
      memset(target.written, 0, bytes);
    auto &groups = w.asyncCopies[n];
    if (groups.empty())
      groups.emplace_back();
    groups.back().push_back(std::move(pending));
  }
}

void commit(Warp &w, const Instruction &) {
  GPUEMU_ACTIVE(w.active) {
    auto &groups = w.asyncCopies[n];
    if (groups.empty())
      groups.emplace_back();
    groups.emplace_back();
  }
}

void arrive(Warp &w, const Instruction &x, unsigned lane,
            const std::vector<AsyncCopy> &copies) {
  Block &block = *w.block;
  for (const AsyncCopy &pending : copies) {
    noteShared(w, x, lane, pending.to, unsigned(pending.bytes.size()),
               AccessKind::Write);
    memcpy(&block.shared[pending.to], pending.bytes.data(),
           pending.bytes.size());
    if (!block.sharedWritten.empty())
      memcpy(&block.sharedWritten[pending.to], pending.written.data(),
             pending.bytes.size());
  }
}

/// `value`: how many of the latest groups may go on; -1: none, nor what is not
/// in a group yet.
void wait(Warp &w, const Instruction &x) {
  GPUEMU_ACTIVE(w.active) {
    auto &groups = w.asyncCopies[n];
    size_t keep = x.value < 0 ? 0 : size_t(x.value) + 1;
    while (groups.size() > keep) {
      arrive(w, x, n, groups.front());
      groups.pop_front();
    }
  }
}

void copyForm(const Match &m, Operands &o) {
  o.expect(3, 4);
  uint64_t bytes = o.constant(2);
  if (bytes != 16 && (m.has("cg") || (bytes != 4 && bytes != 8)))
    o.fail("cp.async does not copy so many bytes");
  // Both operands are addresses: the second goes to `b`.
  Space space = Space::Global;
  o.address(1, space);
  if (o.x.a == noRow || !o.x.wide || o.x.value < 0 || o.x.value > INT32_MAX)
    o.fail("the source of cp.async is a register of 64 bits, with a "
           "displacement that is not negative");
  uint32_t source = o.x.a;
  o.x.d2 = uint32_t(o.x.value);
  o.x.a = noRow;
  space = Space::Shared;
  o.address(0, space);
  o.x.b = source;
  o.x.mode = uint8_t(bytes);
  if (o.size() == 4) {
    if (o.isPredicate(o[3]) || o[3].negated)
      o.x.e = o.predicateSource(3, o.x.negated);
    else
      o.x.c = o.source(3, Type::U32);
  }
  o.x.run = copy;
}

} // namespace

void gpuemu::addCopyForms(FormTable &t) {
  t.add("cp.async.(ca|cg).(shared|shared::cta).global."
        "[L2::64B|L2::128B|L2::256B]",
        copyForm);
  t.add("cp.async.commit_group", [](const Match &, Operands &o) {
    o.expect(0);
    o.x.run = commit;
  });
  t.add("cp.async.wait_group", [](const Match &, Operands &o) {
    o.expect(1);
    o.x.value = int64_t(o.constant(0));
    o.x.run = wait;
  });
  t.add("cp.async.wait_all", [](const Match &, Operands &o) {
    o.expect(0);
    o.x.value = -1;
    o.x.run = wait;
  });
}
