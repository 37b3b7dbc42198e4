//===- ProgramBuilder.h - From statements to instructions -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_PTX_PROGRAMBUILDER_H
#define PARTITA_TEST_GPUEMULATOR_PTX_PROGRAMBUILDER_H

#include "machine/Program.h"
#include "ptx/Text.h"

#include <functional>
#include <map>
#include <memory>

namespace gpuemu {

/// Where a variable of a module lies in global memory.
using AddressOf = std::function<uint64_t(const Variable &)>;

/// Makes a kernel's program: its instructions, and those of the functions that
/// it calls. Functions have one frame each, so that recursion is refused.
class ProgramBuilder {
public:
  ProgramBuilder(const ModuleText &module, const FunctionText &kernel,
                 AddressOf addressOf);

  std::unique_ptr<Program> build();

private:
  friend class Operands;

  /// What a function has in the program.
  struct Frame {
    const FunctionText *text = nullptr;
    uint32_t start = 0;
    std::vector<uint32_t> rows;
    /// Of the variables in shared, local and parameter memory.
    std::vector<uint64_t> offsets;
  };

  void collect(const FunctionText &function,
               std::vector<const FunctionText *> &path);
  void placeVariables();
  void placeParameters();
  void placeShared();
  void placeRegisters();
  void translate(const FunctionText &function);
  void translate(const FunctionText &function, const Statement &statement);
  void branch(const FunctionText &function, const Statement &statement,
              Instruction &x);
  void branchIndexed(const FunctionText &function, const Statement &statement,
                     Instruction &x);
  void call(const FunctionText &function, const Statement &statement,
            Instruction &x);
  uint32_t label(const FunctionText &function, const Statement &statement,
                 const std::string &name);
  std::vector<Copy> copies(const FunctionText &caller,
                           const Statement &statement,
                           const OperandText *operands,
                           const FunctionText &callee,
                           const std::vector<unsigned> &formals, bool results);

  uint32_t row(const FunctionText &function, unsigned index);
  uint32_t special(unsigned number);
  /// A row for results that nobody wants.
  uint32_t sink();
  uint32_t constantRow(uint64_t bits, unsigned bytes);
  /// The address of a variable, in its own space.
  uint64_t address(const FunctionText &function, const OperandText &operand,
                   Space &space);

  const ModuleText &module;
  const FunctionText &kernel;
  AddressOf addressOf;
  std::unique_ptr<Program> program = std::make_unique<Program>();
  std::vector<const FunctionText *> order;
  std::map<const FunctionText *, Frame> frames;
  std::map<const Variable *, uint64_t> sharedOffsets;
  std::map<std::pair<uint64_t, unsigned>, uint32_t> constantRows;
  uint32_t sinkRow = noRow;
};

/// The branch targets of a statement in words: for messages.
[[noreturn]] void failStatement(const Statement &statement,
                                const std::string &what);

} // namespace gpuemu

#endif // PARTITA_TEST_GPUEMULATOR_PTX_PROGRAMBUILDER_H
