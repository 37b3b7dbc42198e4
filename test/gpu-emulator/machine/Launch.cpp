//===- Launch.cpp - Runs the blocks of a launch -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "machine/Interpreter.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>
#include <random>
#include <thread>

using namespace gpuemu;

namespace {

/// A block and its warps' registers, used for one block after another.
class Worker {
public:
  Worker(const Launch &launch, Memory &memory, const RunOptions &options)
      : launch(launch), program(*launch.program), options(options) {
    block.program = &program;
    block.launch = &launch;
    block.memory = &memory;
    block.threads = launch.block[0] * launch.block[1] * launch.block[2];
    block.checkWritten = options.checkWritten;
    block.caches.resize(program.code.size());
    unsigned warps = (block.threads + 31) / 32;
    block.warps.resize(warps);
    stride = (program.registerBytes + 63) / 64 * 64;
    registers.resize(size_t(warps) * stride + 64);
    auto start = reinterpret_cast<uintptr_t>(registers.data());
    uint8_t *aligned = registers.data() + (64 - start % 64) % 64;
    for (unsigned i = 0; i < warps; ++i) {
      Warp &warp = block.warps[i];
      warp.block = &block;
      warp.index = i;
      warp.registers = aligned + i * stride;
      unsigned lanes = std::min(32u, block.threads - i * 32);
      warp.full = lanes == 32 ? allLanes : (1u << lanes) - 1;
      if (!program.constants.empty())
        memcpy(warp.registers + program.constantStart, program.constants.data(),
               program.constants.size());
      setThreadRegisters(warp);
    }
  }

  uint64_t run(uint64_t linear, uint64_t seed) {
    block.id[0] = unsigned(linear % launch.grid[0]);
    block.id[1] = unsigned(linear / launch.grid[0] % launch.grid[1]);
    block.id[2] = unsigned(linear / launch.grid[0] / launch.grid[1]);
    block.epoch = 0;
    block.steps = block.laneSteps = 0;
    // What nothing wrote is no number.
    size_t shared = program.staticShared + launch.dynamicShared;
    size_t local = size_t(program.localBytes) * block.threads;
    block.shared.assign(shared, 0xff);
    block.local.assign(local, 0xff);
    if (options.checkWritten) {
      block.sharedWritten.assign(shared, 0);
      block.localWritten.assign(local, 0);
    }
    if (options.findRaces && shared)
      block.races = std::make_unique<SharedRaces>(shared);
    for (Warp &warp : block.warps) {
      warp.live = warp.full;
      warp.epoch = warp.slices = 0;
      warp.groups.assign(1, Group());
      warp.groups[0].mask = warp.full;
      for (auto &copies : warp.asyncCopies)
        copies.clear();
      for (unsigned i = 0; i < 3; ++i)
        setSpecial(warp, CtaidX + i, [&](unsigned) { return block.id[i]; });
    }
    BlockRun(block, options, seed + linear).run();
    return block.laneSteps;
  }

private:
  enum { TidX = 0, NtidX = 3, CtaidX = 6, NctaidX = 9, Others = 12 };

  template <typename F> void setSpecial(Warp &warp, unsigned number, F f) {
    uint32_t row = program.specials[number];
    if (row == noRow)
      return;
    for (unsigned n = 0; n < 32; ++n)
      warp.row<uint32_t>(row)[n] = f(n);
  }

  void setThreadRegisters(Warp &warp) {
    const unsigned *size = launch.block;
    auto thread = [&](unsigned n) { return warp.thread(n); };
    setSpecial(warp, TidX, [&](unsigned n) { return thread(n) % size[0]; });
    setSpecial(warp, TidX + 1,
               [&](unsigned n) { return thread(n) / size[0] % size[1]; });
    setSpecial(warp, TidX + 2,
               [&](unsigned n) { return thread(n) / size[0] / size[1]; });
    for (unsigned i = 0; i < 3; ++i) {
      setSpecial(warp, NtidX + i, [&](unsigned) { return size[i]; });
      setSpecial(warp, NctaidX + i, [&](unsigned) { return launch.grid[i]; });
    }
    unsigned warps = unsigned(block.warps.size());
    unsigned number = Others;
    setSpecial(warp, number++, [](unsigned n) { return n; });
    setSpecial(warp, number++, [&](unsigned) { return warp.index; });
    setSpecial(warp, number++, [&](unsigned) { return warps; });
    setSpecial(warp, number++, [](unsigned) { return 0u; }); // smid
    setSpecial(warp, number++, [](unsigned) { return 1u; }); // nsmid
    if (uint32_t row = program.specials[number++]; row != noRow)
      for (unsigned n = 0; n < 32; ++n)
        warp.row<uint64_t>(row)[n] = launch.number;
    setSpecial(warp, number++, [](unsigned n) { return 1u << n; });
    setSpecial(warp, number++, [](unsigned n) { return (1u << n) - 1; });
    setSpecial(warp, number++, [](unsigned n) { return (2u << n) - 1; });
    setSpecial(warp, number++, [](unsigned n) { return ~((2u << n) - 1); });
    setSpecial(warp, number++, [](unsigned n) { return ~((1u << n) - 1); });
    setSpecial(warp, number++, [&](unsigned) { return launch.dynamicShared; });
    setSpecial(warp, number++, [&](unsigned) {
      return program.staticShared + launch.dynamicShared;
    });
  }

  const Launch &launch;
  const Program &program;
  const RunOptions &options;
  Block block;
  std::vector<uint8_t> registers;
  size_t stride = 0;
};

} // namespace

RunResult gpuemu::runLaunch(const Launch &launch, Memory &memory,
                            const RunOptions &options) {
  uint64_t count = uint64_t(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  uint64_t seed = options.seed ? options.seed * 1000003 + launch.number : 0;
  std::vector<uint32_t> order;
  if (options.seed) {
    order.resize(count);
    std::iota(order.begin(), order.end(), 0);
    std::mt19937_64 random(seed);
    std::shuffle(order.begin(), order.end(), random);
  }
  // Atomic operations make the order of blocks visible: it must not depend on
  // the host's threads then.
  unsigned threads = launch.program->hasAtomics ? 1 : options.hostThreads;
  threads = unsigned(std::min<uint64_t>(threads, (count + 7) / 8));
  std::atomic<uint64_t> nextBlock = 0, laneSteps = 0;
  std::vector<std::exception_ptr> errors(threads);
  auto work = [&](unsigned index) {
    try {
      Worker worker(launch, memory, options);
      for (uint64_t i; (i = nextBlock++) < count;)
        laneSteps += worker.run(order.empty() ? i : order[i], seed);
    } catch (...) {
      errors[index] = std::current_exception();
      nextBlock = count;
    }
  };
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < threads; ++i)
    helpers.emplace_back(work, i);
  work(0);
  for (std::thread &helper : helpers)
    helper.join();
  for (const std::exception_ptr &error : errors)
    if (error)
      std::rethrow_exception(error);
  return {laneSteps};
}
