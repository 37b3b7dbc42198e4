//===- Block.cpp - A block of threads as fibres ---------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Block.h"

#include <memory>
#include <ucontext.h>
#include <vector>
#include <xmmintrin.h>

namespace partita::test {
namespace {

constexpr uint32_t kWarp = 32;
constexpr size_t kStack = 256 * 1024;
constexpr unsigned kFlushDenormals = 0x8040; // results, and operands

enum class State { ready, barrier, shuffle, done };

struct Fibre {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  State state = State::ready;
  uint32_t thread = 0;
  // A shuffle: its lanes, what this one gives, whose value it wants, and what
  // it gets.
  uint32_t mask = 0, value = 0, source = 0, result = 0;
};

struct Block {
  uint32_t number = 0, blocks = 0, threads = 0;
  std::vector<Fibre> fibres;
  Fibre *running = nullptr;
  ucontext_t scheduler;
  const std::function<void()> *body = nullptr;
};

Block block;

void wait(State state) {
  Fibre &fibre = *block.running;
  fibre.state = state;
  swapcontext(&fibre.context, &block.scheduler);
}

void start() {
  (*block.body)();
  wait(State::done);
}

/// Lets the lanes of each complete shuffle go on.
bool exchange() {
  bool any = false;
  for (uint32_t i = 0; i < block.threads; ++i) {
    if (block.fibres[i].state != State::shuffle)
      continue;
    const uint32_t mask = block.fibres[i].mask, first = i / kWarp * kWarp;
    bool complete = true;
    for (uint32_t lane = 0; lane < kWarp; ++lane)
      if (mask >> lane & 1)
        complete &= first + lane < block.threads &&
                    block.fibres[first + lane].state == State::shuffle &&
                    block.fibres[first + lane].mask == mask;
    if (!complete)
      continue;
    for (uint32_t lane = 0; lane < kWarp; ++lane)
      if (mask >> lane & 1) {
        Fibre &fibre = block.fibres[first + lane];
        fibre.result = block.fibres[first + fibre.source].value;
        fibre.state = State::ready;
      }
    any = true;
  }
  return any;
}

bool all(State state) {
  for (uint32_t i = 0; i < block.threads; ++i)
    if (block.fibres[i].state != state)
      return false;
  return true;
}

uint32_t threadInBlock() { return block.running->thread; }
uint32_t blockInGrid() { return block.number; }
uint32_t threadsOfBlock() { return block.threads; }
uint32_t blocksOfGrid() { return block.blocks; }
uint32_t laneInWarp() { return block.running->thread % kWarp; }

void barrier(uint32_t) { wait(State::barrier); }
void barrierOfAll() { wait(State::barrier); }

/// A shuffle, as the manual of PTX describes `shfl.sync`.
enum class From { up, down, exclusiveOr, lane };
template <From from>
uint32_t shuffle(uint32_t mask, uint32_t value, uint32_t by, uint32_t control) {
  Fibre &fibre = *block.running;
  const uint32_t lane = fibre.thread % kWarp, segment = control >> 8 & 31,
                 clamp = control & 31, least = lane & segment,
                 most = least | (clamp & ~segment);
  by &= 31;
  const int64_t wanted = from == From::up     ? int64_t(lane) - by
                         : from == From::down ? int64_t(lane) + by
                         : from == From::exclusiveOr
                             ? int64_t(lane ^ by)
                             : int64_t(least | (by & ~segment));
  const bool inside = from == From::up ? wanted >= most : wanted <= most;
  fibre.mask = mask;
  fibre.value = value;
  fibre.source = inside ? uint32_t(wanted) : lane;
  wait(State::shuffle);
  return fibre.result;
}

void meetOfWarp(uint32_t mask) { shuffle<From::exclusiveOr>(mask, 0, 0, 31); }

} // namespace

const std::map<std::string, void *> &gpuFunctions() {
  static const std::map<std::string, void *> functions = {
      {"nvvm.read.ptx.sreg.tid.x", reinterpret_cast<void *>(threadInBlock)},
      {"nvvm.read.ptx.sreg.ctaid.x", reinterpret_cast<void *>(blockInGrid)},
      {"nvvm.read.ptx.sreg.ntid.x", reinterpret_cast<void *>(threadsOfBlock)},
      {"nvvm.read.ptx.sreg.nctaid.x", reinterpret_cast<void *>(blocksOfGrid)},
      {"nvvm.read.ptx.sreg.laneid", reinterpret_cast<void *>(laneInWarp)},
      {"nvvm.barrier.cta.sync.aligned.all", reinterpret_cast<void *>(barrier)},
      {"nvvm.barrier0", reinterpret_cast<void *>(barrierOfAll)},
      {"nvvm.bar.warp.sync", reinterpret_cast<void *>(meetOfWarp)},
      {"nvvm.shfl.sync.up.i32", reinterpret_cast<void *>(shuffle<From::up>)},
      {"nvvm.shfl.sync.down.i32",
       reinterpret_cast<void *>(shuffle<From::down>)},
      {"nvvm.shfl.sync.bfly.i32",
       reinterpret_cast<void *>(shuffle<From::exclusiveOr>)},
      {"nvvm.shfl.sync.idx.i32", reinterpret_cast<void *>(shuffle<From::lane>)},
  };
  return functions;
}

static std::string runFibres(uint32_t threads) {
  for (uint32_t i = 0; i < threads; ++i) {
    Fibre &fibre = block.fibres[i];
    if (!fibre.stack)
      fibre.stack.reset(new char[kStack]);
    getcontext(&fibre.context);
    fibre.context.uc_stack.ss_sp = fibre.stack.get();
    fibre.context.uc_stack.ss_size = kStack;
    fibre.context.uc_link = nullptr;
    makecontext(&fibre.context, start, 0);
  }
  while (true) {
    for (uint32_t i = 0; i < threads; ++i)
      if (block.fibres[i].state == State::ready) {
        block.running = &block.fibres[i];
        swapcontext(&block.scheduler, &block.fibres[i].context);
      }
    if (exchange())
      continue;
    if (all(State::done))
      return "";
    if (!all(State::barrier))
      return "threads of block " + std::to_string(block.number) +
             " wait for others that do not come";
    for (uint32_t i = 0; i < threads; ++i)
      block.fibres[i].state = State::ready;
  }
}

std::string runBlock(uint32_t number, uint32_t blocks, uint32_t threads,
                     bool waits, const std::function<void()> &body) {
  block.number = number;
  block.blocks = blocks;
  block.threads = threads;
  block.body = &body;
  if (block.fibres.size() < threads)
    block.fibres.resize(threads);
  for (uint32_t i = 0; i < threads; ++i) {
    block.fibres[i].thread = i;
    block.fibres[i].state = State::ready;
  }
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | kFlushDenormals);
  std::string wrong;
  if (waits)
    wrong = runFibres(threads);
  else
    for (uint32_t i = 0; i < threads; ++i) {
      block.running = &block.fibres[i];
      body();
    }
  _mm_setcsr(before);
  return wrong;
}

} // namespace partita::test
