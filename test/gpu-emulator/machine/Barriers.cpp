//===- Barriers.cpp - Where the threads of a block meet ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "machine/Error.h"
#include "machine/Interpreter.h"

#include <algorithm>

using namespace gpuemu;

namespace {

unsigned countLanes(uint32_t mask) {
  return unsigned(__builtin_popcount(mask));
}

uint32_t valueOf(Warp &warp, uint32_t row, uint32_t mask) {
  return warp.row<uint32_t>(row)[__builtin_ctz(mask)];
}

} // namespace

bool BlockRun::releaseBarriers() {
  bool any = false;
  for (unsigned id = 0; id < 16; ++id)
    any |= releaseBarrier(id);
  return any;
}

bool BlockRun::releaseBarrier(unsigned id) {
  // Those that only arrive do not wait.
  std::vector<std::pair<Warp *, Group *>> waiting;
  unsigned expected = 0;
  bool released = false;
  for (Warp &warp : block.warps)
    for (Group &group : warp.groups) {
      if (group.state != Group::AtBarrier)
        continue;
      const Instruction &x = block.program->code[group.pc];
      uint32_t mine = valueOf(warp, x.a, group.mask);
      if (mine > 15)
        failAt(LaunchFailed, "a block has the barriers 0 to 15", warp, x,
               unsigned(__builtin_ctz(group.mask)));
      if (mine != id)
        continue;
      unsigned count =
          x.b == noRow ? block.threads : valueOf(warp, x.b, group.mask);
      if (x.b != noRow && (count == 0 || count % 32))
        failAt(LaunchFailed,
               "a barrier of a number of threads that is no "
               "multiple of 32",
               warp, x, unsigned(__builtin_ctz(group.mask)));
      if (expected && expected != count)
        failAt(LaunchFailed,
               "threads wait at one barrier for different numbers "
               "of threads",
               warp, x, unsigned(__builtin_ctz(group.mask)));
      expected = count;
      // The hardware counts whole warps.
      if (x.wide && group.mask != warp.live)
        continue;
      if (x.mode == BarrierArrive) {
        barriers[id].arrived += x.b == noRow ? countLanes(group.mask) : 32;
        ++group.pc;
        group.state = Group::Ready;
        released = true;
        continue;
      }
      waiting.emplace_back(&warp, &group);
    }
  unsigned present = barriers[id].arrived;
  for (auto [warp, group] : waiting) {
    const Instruction &x = block.program->code[group->pc];
    present += x.b == noRow ? countLanes(group->mask) : 32;
  }
  if (waiting.empty() || present < expected)
    return released;
  if (present > expected)
    failAt(LaunchFailed,
           std::to_string(present) + " threads at a barrier of " +
               std::to_string(expected),
           *waiting[0].first, block.program->code[waiting[0].second->pc],
           unsigned(__builtin_ctz(waiting[0].second->mask)));
  finishBarrier(id, waiting);
  return true;
}

void BlockRun::finishBarrier(
    unsigned id, const std::vector<std::pair<Warp *, Group *>> &groups) {
  unsigned count = 0, voters = 0;
  for (auto [warp, group] : groups) {
    const Instruction &x = block.program->code[group->pc];
    if (x.c == noRow)
      continue;
    uint32_t votes = warp->predicate(x.c) ^ (x.negated ? allLanes : 0);
    count += countLanes(votes & group->mask);
    voters += countLanes(group->mask);
  }
  for (auto [warp, group] : groups) {
    const Instruction &x = block.program->code[group->pc];
    warp->active = group->mask;
    if (x.mode == BarrierCount) {
      eachLane<uint32_t>(*warp, x.d, [=](int) { return count; });
    } else if (x.mode == BarrierAnd || x.mode == BarrierOr) {
      bool result = x.mode == BarrierAnd ? count == voters : count != 0;
      eachPredicate(*warp, x.d, [=](int) { return result; });
    }
    ++group->pc;
    group->state = Group::Ready;
  }
  barriers[id].arrived = 0;
  ++block.epoch;
}

void BlockRun::failStuck() {
  // The barrier that the most threads wait at, and who is missing.
  unsigned left = 0, elsewhere = 0, meeting = 0, atBarrier = 0;
  const Warp *warp = nullptr;
  const Group *group = nullptr;
  for (const Warp &each : block.warps) {
    left += countLanes(each.full & ~each.live);
    for (const Group &candidate : each.groups) {
      (candidate.state == Group::Meeting ? meeting : atBarrier) +=
          countLanes(candidate.mask);
      bool better =
          !group ||
          (group->state == Group::Meeting &&
           candidate.state == Group::AtBarrier) ||
          (group->state == candidate.state && candidate.pc < group->pc);
      if (better) {
        warp = &each;
        group = &candidate;
      }
    }
  }
  for (const Warp &each : block.warps)
    for (const Group &candidate : each.groups)
      if (candidate.state == Group::AtBarrier && candidate.pc != group->pc)
        elsewhere += countLanes(candidate.mask);
  const Instruction &x = block.program->code[group->pc];
  unsigned lane = unsigned(__builtin_ctz(group->mask));
  if (group->state == Group::Meeting)
    failAt(LaunchFailed, "lanes of the member mask never reach the instruction",
           *warp, x, lane);
  failAt(LaunchFailed,
         "a barrier that not all threads reach: " +
             std::to_string(atBarrier - elsewhere) + " of " +
             std::to_string(block.threads) + " wait at it, " +
             std::to_string(elsewhere) + " at other barriers, " +
             std::to_string(meeting) + " for lanes of their warp, and " +
             std::to_string(left) + " have left the kernel",
         *warp, x, lane);
}
