//===- Program.h - A kernel, ready to run -----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel and the functions that it calls become one array of instructions.
// An operand is the offset of a row in a warp's registers: one value for each
// of the 32 lanes, of the operand's size. Constants and special registers are
// rows, too. A predicate is one word with a bit for each lane.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_MACHINE_PROGRAM_H
#define PARTITA_TEST_GPUEMULATOR_MACHINE_PROGRAM_H

#include "ptx/Types.h"

#include <vector>

namespace gpuemu {

struct Warp;
struct Instruction;
using Handler = void (*)(Warp &, const Instruction &);

constexpr uint32_t noRow = ~uint32_t(0);

/// How an instruction changes what runs next.
enum class Flow : uint8_t {
  Next,
  Branch,
  BranchIndexed,
  Call,
  Return,
  Exit,
  /// All threads of the block meet, or as many as an operand says.
  Barrier,
  /// The lanes that a mask names run the instruction together.
  Together,
};

struct Instruction {
  Handler run = nullptr;
  uint32_t d = noRow, a = noRow, b = noRow, c = noRow, e = noRow;
  /// The predicate beside a result (`%r|%p`); of cp.async the displacement of
  /// the source.
  uint32_t d2 = noRow;
  /// Rows of vectors, in Program::lists.
  uint32_t list = 0;
  uint32_t line = 0;
  /// The displacement of an address, a target, or what else is constant.
  int64_t value = 0;
  uint32_t guard = noRow;
  Flow flow = Flow::Next;
  bool guardNegated = false;
  /// Whether `a` holds addresses of 64 bits; of 32 otherwise.
  bool wide = false;
  bool negated = false;
  uint8_t count = 1;
  /// Says which of several ways a handler goes.
  uint8_t mode = 0;
  Space space = Space::Generic;
  Type type = Type::None;
  /// Its own place in the program.
  uint32_t index = 0;
};

/// Bytes of the memory for parameters that a call copies, for each lane.
struct Copy {
  uint32_t from = 0, to = 0, bytes = 0;
};

struct CallSite {
  uint32_t target = 0;
  std::vector<Copy> arguments, results;
};

struct Parameter {
  uint32_t offset = 0, bytes = 0;
};

struct Program {
  std::string name;
  std::vector<Instruction> code;
  std::vector<std::string> texts;
  std::vector<uint32_t> lists;
  std::vector<CallSite> calls;
  std::vector<std::vector<uint32_t>> branchTargets;
  std::vector<Parameter> parameters;
  uint32_t parameterBytes = 0;
  uint32_t staticShared = 0;
  uint32_t localBytes = 0;
  /// The size of a warp's registers, and what the constants among them hold.
  uint32_t registerBytes = 0;
  uint32_t constantStart = 0;
  std::vector<uint8_t> constants;
  /// For each special register its row, or noRow.
  std::vector<uint32_t> specials;
  unsigned maxThreads = 1024;
  bool exactThreads = false;
  unsigned exactBlock[3] = {0, 0, 0};
  /// Registers of 32 bits that a thread needs, as an estimate.
  unsigned registerCount = 0;
  /// Whether there are atomic operations outside of shared memory, for which
  /// the order of blocks matters.
  bool hasAtomics = false;
};

} // namespace gpuemu

#endif // PARTITA_TEST_GPUEMULATOR_MACHINE_PROGRAM_H
