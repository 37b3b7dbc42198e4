//===- Text.h - A module of PTX as it is written ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the parser makes of a module's text. Names are resolved, and nothing is
// known yet about what instructions do.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_PTX_TEXT_H
#define PARTITA_TEST_GPUEMULATOR_PTX_TEXT_H

#include "ptx/Types.h"

#include <map>
#include <memory>
#include <vector>

namespace gpuemu {

/// A value of an initialiser: a number, or the address of a variable.
struct Initial {
  uint64_t bits = 0;
  std::string variable;
  bool generic = false;
  unsigned bytes = 0;
};

struct Variable {
  Space space = Space::Generic;
  std::string name;
  Type type = Type::None;
  unsigned align = 1;
  uint64_t bytes = 0;
  /// Declared here and defined elsewhere; in shared memory: the memory whose
  /// size a launch gives.
  bool isExtern = false;
  std::vector<Initial> initial;
};

struct Register {
  std::string name;
  Type type = Type::None;
};

struct OperandText {
  enum class Kind : uint8_t {
    Register,
    Integer,
    Float32,
    Float64,
    /// A variable of the module (`variable`) or of the function (`index`).
    ModuleVariable,
    LocalVariable,
    Special,
    Vector,
    Memory,
    /// A label or a function.
    Name,
    /// `_`: the result is not wanted.
    Sink,
    List,
  };
  Kind kind = Kind::Sink;
  bool negated = false;
  unsigned index = 0;
  /// The other register of `%p1|%p2`, or -1.
  int second = -1;
  uint64_t bits = 0;
  std::string name;
  const Variable *variable = nullptr;
  /// Of a vector; of an address its base, if it has one; of a list in
  /// parentheses.
  std::vector<OperandText> elements;
};

struct Statement {
  unsigned line = 0;
  std::string text;
  int guard = -1;
  bool guardNegated = false;
  std::string opcode;
  std::vector<OperandText> operands;
};

struct FunctionText {
  std::string name;
  unsigned line = 0;
  bool isEntry = false;
  bool isDefined = false;
  /// Indices into `variables`.
  std::vector<unsigned> results, parameters;
  std::vector<Register> registers;
  std::vector<Variable> variables;
  std::vector<Statement> statements;
  std::map<std::string, unsigned> labels;
  std::map<std::string, std::vector<std::string>> branchTargets;
  unsigned maxThreads = 0;
  bool exactThreads = false;
  unsigned exactBlock[3] = {0, 0, 0};
};

struct ModuleText {
  unsigned architecture = 0;
  unsigned version = 0;
  /// A deque's property is needed: pointers to elements stay.
  std::map<std::string, std::unique_ptr<Variable>> variables;
  /// In the order of the text.
  std::vector<const Variable *> order;
  std::map<std::string, std::unique_ptr<FunctionText>> functions;
};

/// Reads a module. Throws a Fault that names the line.
std::unique_ptr<ModuleText> parseModule(std::string_view text);

/// The number of a special register (`%tid.x`), or -1.
int specialRegister(std::string_view name);
Type specialType(unsigned number);

enum SpecialNumber : unsigned {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NwarpId,
  SmId,
  NsmId,
  GridId,
  LanemaskEq,
  LanemaskLt,
  LanemaskLe,
  LanemaskGt,
  LanemaskGe,
  DynamicSmemSize,
  TotalSmemSize,
  SpecialCount,
};

} // namespace gpuemu

#endif // PARTITA_TEST_GPUEMULATOR_PTX_TEXT_H
