//===- Interpreter.h - Runs a kernel ----------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_MACHINE_INTERPRETER_H
#define PARTITA_TEST_GPUEMULATOR_MACHINE_INTERPRETER_H

#include "machine/Warp.h"

namespace gpuemu {

/// What an instruction of Flow::Barrier does, in its `mode`.
enum BarrierMode : uint8_t {
  BarrierSync,
  BarrierArrive,
  BarrierCount,
  BarrierAnd,
  BarrierOr,
};

struct RunOptions {
  /// Draws the order of blocks and of warps; 0: as they are numbered.
  uint64_t seed = 0;
  /// Threads of the host that run blocks.
  unsigned hostThreads = 1;
  bool findRaces = false;
  bool checkWritten = true;
  /// Instructions of warps that one block may run; what runs on is a hang.
  uint64_t mostSteps = uint64_t(1) << 32;
};

struct RunResult {
  /// Instructions of lanes.
  uint64_t laneSteps = 0;
};

/// Runs all blocks of a launch. Throws a Fault for what a kernel does wrong.
RunResult runLaunch(const Launch &launch, Memory &memory,
                    const RunOptions &options);

/// Runs the warps of one block to their end, in turns.
class BlockRun {
public:
  BlockRun(Block &block, const RunOptions &options, uint64_t seed);
  void run();

private:
  struct Barrier {
    unsigned arrived = 0;
  };

  /// Runs a warp until its lanes wait or have left. False if none could go on.
  bool runWarp(Warp &warp);
  /// Runs a group until another is to be chosen.
  void runGroup(Warp &warp, size_t index, uint64_t &budget);
  size_t chooseGroup(Warp &warp);
  void merge(Warp &warp);
  void split(Warp &warp, size_t index, uint32_t pc, uint32_t mask);
  bool meet(Warp &warp, size_t index, const Instruction &x, uint32_t on);
  void branchIndexed(Warp &warp, size_t index, const Instruction &x,
                     uint32_t on);
  void call(Warp &warp, Group &group, const Instruction &x);
  void returnFrom(Warp &warp, Group &group);
  void copy(Warp &warp, const std::vector<Copy> &copies, uint32_t mask);
  void leave(Warp &warp, size_t index, uint32_t on, uint32_t next);

  bool releaseBarriers();
  bool releaseBarrier(unsigned id);
  void finishBarrier(unsigned id,
                     const std::vector<std::pair<Warp *, Group *>> &groups);
  [[noreturn]] void failStuck();

  Block &block;
  const RunOptions &options;
  uint64_t random;
  Barrier barriers[16];
};

} // namespace gpuemu

#endif // PARTITA_TEST_GPUEMULATOR_MACHINE_INTERPRETER_H
