//===- SharedRaces.cpp - Races in shared memory -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "machine/SharedRaces.h"

using namespace gpuemu;

bool SharedRaces::clashes(const Stamp &stamp, Access kind, unsigned thread,
                          Time time) {
  if (stamp.blockEpoch != time.block)
    return false;
  if (stamp.atomic && kind == Access::Atomic)
    return false;
  if (stamp.severalWarps || stamp.thread / 32 != thread / 32)
    return true;
  if (stamp.warpEpoch != time.warp)
    return false;
  return stamp.severalThreads || stamp.thread != thread;
}

std::optional<std::string> SharedRaces::access(uint32_t address, unsigned bytes,
                                               Access kind, unsigned thread,
                                               Time time) {
  for (uint32_t i = address; i < address + bytes; ++i) {
    Stamp &wrote = writes[i], &read = reads[i];
    bool isWrite = kind != Access::Read;
    // The same thread again, and nobody since.
    auto isMine = [&](const Stamp &stamp) {
      return stamp.blockEpoch == time.block && stamp.warpEpoch == time.warp &&
             stamp.thread == thread && !stamp.severalThreads &&
             !stamp.severalWarps && stamp.atomic == (kind == Access::Atomic);
    };
    bool known = isMine(isWrite ? wrote : read) &&
                 (isWrite ? read.blockEpoch != time.block || isMine(read)
                          : wrote.blockEpoch != time.block || isMine(wrote));
    if (known && kind != Access::Atomic)
      continue;
    const Stamp *other = nullptr;
    if (clashes(wrote, kind, thread, time))
      other = &wrote;
    else if (isWrite && clashes(read, kind, thread, time))
      other = &read;
    if (other)
      return std::string(other == &wrote
                             ? isWrite ? "two writes" : "a read after a write"
                             : "a write after a read") +
             " without a barrier between them, of byte " + std::to_string(i) +
             " of shared memory, with thread " + std::to_string(other->thread) +
             " of the block";
    Stamp &stamp = isWrite ? wrote : read;
    bool same = !isWrite && stamp.blockEpoch == time.block;
    bool sameWarp = stamp.thread / 32 == thread / 32;
    Stamp next{time.block, time.warp, uint16_t(thread), kind == Access::Atomic,
               false,      false};
    if (same) {
      next.severalWarps = stamp.severalWarps || !sameWarp;
      next.severalThreads = sameWarp && stamp.warpEpoch == time.warp &&
                            (stamp.severalThreads || stamp.thread != thread);
    }
    stamp = next;
  }
  return std::nullopt;
}
