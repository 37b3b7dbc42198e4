//===- Interpreter.cpp - Runs the warps of a block --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lanes with the same program counter and the same calls form a group. The
// group that is furthest back goes first, so that lanes which took different
// ways meet again where these end.
//
//===----------------------------------------------------------------------===//

#include "machine/Interpreter.h"

#include "machine/Error.h"

#include <algorithm>
#include <cstring>

using namespace gpuemu;

namespace {

/// Instructions that a warp may run before another has its turn.
constexpr uint64_t slice = 1 << 14;

/// What comes earlier in the program, call by call.
bool isBehind(const Group &a, const Group &b) {
  size_t common = std::min(a.calls.size(), b.calls.size());
  for (size_t i = 0; i < common; ++i)
    if (a.calls[i] != b.calls[i])
      return a.calls[i] < b.calls[i];
  uint32_t left = a.calls.size() > common ? a.calls[common] : a.pc;
  uint32_t right = b.calls.size() > common ? b.calls[common] : b.pc;
  return left < right;
}

uint64_t next(uint64_t &state) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

uint32_t guarded(Warp &warp, const Instruction &x, uint32_t mask) {
  if (x.guard == noRow)
    return mask;
  uint32_t guard = warp.predicate(x.guard);
  return mask & (x.guardNegated ? ~guard : guard);
}

} // namespace

std::string gpuemu::describePlace(const Warp &warp, const Instruction &x,
                                  unsigned lane) {
  const Block &block = *warp.block;
  unsigned thread = warp.thread(lane);
  const unsigned *n = block.launch->block;
  char place[160];
  snprintf(place, sizeof place, "block (%u,%u,%u), thread (%u,%u,%u)",
           block.id[0], block.id[1], block.id[2], thread % n[0],
           thread / n[0] % n[1], thread / n[0] / n[1]);
  return "kernel " + block.program->name + ", PTX line " +
         std::to_string(x.line) + " `" + block.program->texts[x.index] + "`, " +
         place;
}

void gpuemu::failAt(int error, const std::string &what, const Warp &warp,
                    const Instruction &x, unsigned lane) {
  throw Fault(error, what + ": " + describePlace(warp, x, lane));
}

BlockRun::BlockRun(Block &block, const RunOptions &options, uint64_t seed)
    : block(block), options(options),
      random(seed * 2654435761u + 88172645463325252u) {}

void BlockRun::run() {
  std::vector<Warp *> order;
  for (Warp &warp : block.warps)
    order.push_back(&warp);
  while (true) {
    if (options.seed)
      for (size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1], order[next(random) % i]);
    bool progress = false, live = false;
    for (Warp *warp : order)
      progress |= runWarp(*warp);
    for (Warp &warp : block.warps)
      live |= warp.live != 0;
    if (!live)
      return;
    if (!releaseBarriers() && !progress)
      failStuck();
  }
}

size_t BlockRun::chooseGroup(Warp &warp) {
  std::vector<Group> &groups = warp.groups;
  size_t best = groups.size(), ready = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].state != Group::Ready)
      continue;
    ++ready;
    if (best == groups.size() || isBehind(groups[i], groups[best]))
      best = i;
  }
  // Lanes that wait in a loop for others of their warp must let these go on.
  if (ready > 1 && warp.slices % 2) {
    size_t skip = next(random) % ready;
    for (size_t i = 0; i < groups.size(); ++i)
      if (groups[i].state == Group::Ready && skip-- == 0)
        return i;
  }
  return best;
}

void BlockRun::merge(Warp &warp) {
  std::vector<Group> &groups = warp.groups;
  for (size_t i = 0; i < groups.size(); ++i)
    for (size_t j = groups.size(); j-- > i + 1;) {
      Group &a = groups[i], &b = groups[j];
      if (a.pc != b.pc || a.state != b.state || a.calls != b.calls)
        continue;
      a.mask |= b.mask;
      groups.erase(groups.begin() + ptrdiff_t(j));
    }
  groups.erase(std::remove_if(groups.begin(), groups.end(),
                              [](const Group &g) { return g.mask == 0; }),
               groups.end());
}

void BlockRun::split(Warp &warp, size_t index, uint32_t pc, uint32_t mask) {
  Group other = warp.groups[index];
  warp.groups[index].mask &= ~mask;
  other.pc = pc;
  other.mask = mask;
  warp.groups.push_back(std::move(other));
}

bool BlockRun::runWarp(Warp &warp) {
  bool progress = false;
  uint64_t budget = slice;
  while (warp.live && budget) {
    if (warp.groups.size() > 1)
      merge(warp);
    size_t index = chooseGroup(warp);
    if (index == warp.groups.size())
      break;
    uint64_t before = budget;
    runGroup(warp, index, budget);
    progress |= budget != before;
    merge(warp);
  }
  warp.slices = budget ? 0 : warp.slices + 1;
  block.steps += slice - budget;
  if (block.steps > options.mostSteps)
    throw Fault(LaunchTimeout,
                "kernel " + block.program->name + ": a block has run " +
                    std::to_string(block.steps) +
                    " instructions of warps and does not end (CUDA_EMU_STEPS)");
  return progress;
}

void BlockRun::runGroup(Warp &warp, size_t index, uint64_t &budget) {
  const Instruction *code = block.program->code.data();
  // Where another group that is ahead is met, or passed by.
  uint32_t limit = ~uint32_t(0);
  const Group &mine = warp.groups[index];
  size_t depth = mine.calls.size();
  for (const Group &other : warp.groups) {
    if (&other == &mine || other.state != Group::Ready ||
        other.calls.size() < depth ||
        !std::equal(mine.calls.begin(), mine.calls.end(), other.calls.begin()))
      continue;
    uint32_t there =
        other.calls.size() > depth ? other.calls[depth] + 1 : other.pc;
    if (there > mine.pc)
      limit = std::min(limit, there);
  }
  uint32_t pc = warp.groups[index].pc, mask = warp.groups[index].mask;
  uint64_t laneSteps = 0;
  auto stop = [&] {
    warp.groups[index].pc = pc;
    block.laneSteps += laneSteps;
  };
  const unsigned lanes = unsigned(__builtin_popcount(mask));
  while (budget) {
    const Instruction &x = code[pc];
    uint32_t on = guarded(warp, x, mask);
    --budget;
    laneSteps += lanes;
    switch (x.flow) {
    case Flow::Next:
      if (on) {
        warp.active = on;
        x.run(warp, x);
      }
      ++pc;
      break;
    case Flow::Branch:
      if (on == mask) {
        pc = uint32_t(x.value);
      } else if (on == 0) {
        ++pc;
      } else {
        ++pc;
        stop();
        split(warp, index, uint32_t(x.value), on);
        return;
      }
      break;
    case Flow::BranchIndexed:
      stop();
      branchIndexed(warp, index, x, on);
      return;
    case Flow::Call:
    case Flow::Return:
      stop();
      if (on && on != mask)
        split(warp, index, pc + 1, mask & ~on);
      if (!on) {
        ++warp.groups[index].pc;
      } else if (x.flow == Flow::Call) {
        call(warp, warp.groups[index], x);
      } else if (warp.groups[index].calls.empty()) {
        leave(warp, index, on, pc);
      } else {
        returnFrom(warp, warp.groups[index]);
      }
      return;
    case Flow::Exit:
      stop();
      leave(warp, index, on, pc + 1);
      return;
    case Flow::Barrier:
      stop();
      if (on != mask)
        split(warp, index, pc + 1, mask & ~on);
      if (on)
        warp.groups[index].state = Group::AtBarrier;
      return;
    case Flow::Together:
      stop();
      if (!meet(warp, index, x, on))
        return;
      ++pc;
      if (warp.groups[index].mask != mask || warp.groups.size() > 1) {
        warp.groups[index].pc = pc;
        return;
      }
      laneSteps = 0;
      break;
    }
    if (pc >= limit)
      break;
  }
  stop();
}

/// Whether the lanes have met; then the instruction has run. Otherwise they
/// wait as a group.
bool BlockRun::meet(Warp &warp, size_t index, const Instruction &x,
                    uint32_t on) {
  uint32_t mask = warp.groups[index].mask;
  if (on != mask)
    split(warp, index, warp.groups[index].pc + 1, mask & ~on);
  if (on == 0)
    return false;
  // Groups that wait here already take part.
  Group &group = warp.groups[index];
  uint32_t present = on;
  for (const Group &other : warp.groups)
    if (&other != &group && other.pc == group.pc &&
        other.calls == group.calls && other.state == Group::Meeting)
      present |= other.mask;
  uint32_t done = 0;
  GPUEMU_ACTIVE(present) {
    if (done >> n & 1)
      continue;
    uint32_t members = x.e == noRow ? allLanes : warp.row<uint32_t>(x.e)[n];
    if (!(members >> n & 1))
      failAt(LaunchFailed, "a lane is not in its own member mask", warp, x, n);
    if (uint32_t gone = members & warp.full & ~warp.live)
      failAt(LaunchFailed,
             "lane " + std::to_string(__builtin_ctz(gone)) +
                 " is in the member mask and has left the kernel",
             warp, x, n);
    members &= warp.full;
    if (members & ~present)
      continue;
    warp.active = members;
    x.run(warp, x);
    done |= members;
  }
  if (done == present && present == on)
    return true;
  // Lanes that ran go on from the next instruction; the others wait.
  uint32_t pc = group.pc;
  std::vector<uint32_t> calls = group.calls;
  for (Group &other : warp.groups)
    if (other.pc == pc && other.calls == calls &&
        (&other == &warp.groups[index] || other.state == Group::Meeting))
      other.mask &= ~done;
  if (done) {
    Group ahead;
    ahead.pc = pc + 1;
    ahead.mask = done;
    ahead.calls = calls;
    warp.groups.push_back(std::move(ahead));
  }
  warp.groups[index].state = Group::Meeting;
  return false;
}

void BlockRun::branchIndexed(Warp &warp, size_t index, const Instruction &x,
                             uint32_t on) {
  const std::vector<uint32_t> &targets =
      block.program->branchTargets[size_t(x.value)];
  const uint32_t *a = warp.row<uint32_t>(x.a);
  uint32_t left = on;
  uint32_t pc = warp.groups[index].pc;
  warp.groups[index].pc = pc + 1;
  while (left) {
    unsigned lane = unsigned(__builtin_ctz(left));
    if (a[lane] >= targets.size())
      failAt(LaunchFailed,
             "a branch to target " + std::to_string(a[lane]) + " of " +
                 std::to_string(targets.size()),
             warp, x, lane);
    uint32_t same = 0;
    GPUEMU_ACTIVE(left) same |= uint32_t(a[n] == a[lane]) << n;
    split(warp, index, targets[a[lane]], same);
    left &= ~same;
  }
}

void BlockRun::copy(Warp &warp, const std::vector<Copy> &copies,
                    uint32_t mask) {
  size_t size = block.program->localBytes;
  for (const Copy &copy : copies)
    GPUEMU_ACTIVE(mask) {
      size_t base = warp.thread(n) * size;
      memmove(&block.local[base + copy.to], &block.local[base + copy.from],
              copy.bytes);
      if (!block.localWritten.empty())
        memmove(&block.localWritten[base + copy.to],
                &block.localWritten[base + copy.from], copy.bytes);
    }
}

void BlockRun::call(Warp &warp, Group &group, const Instruction &x) {
  const CallSite &site = block.program->calls[size_t(x.value)];
  copy(warp, site.arguments, group.mask);
  group.calls.push_back(group.pc);
  group.pc = site.target;
}

void BlockRun::returnFrom(Warp &warp, Group &group) {
  uint32_t caller = group.calls.back();
  group.calls.pop_back();
  const Instruction &x = block.program->code[caller];
  copy(warp, block.program->calls[size_t(x.value)].results, group.mask);
  group.pc = caller + 1;
}

void BlockRun::leave(Warp &warp, size_t index, uint32_t on, uint32_t next) {
  warp.live &= ~on;
  warp.groups[index].mask &= ~on;
  warp.groups[index].pc = next;
}
