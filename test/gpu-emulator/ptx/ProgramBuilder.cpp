//===- ProgramBuilder.cpp - From statements to instructions -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ptx/ProgramBuilder.h"

#include "machine/Error.h"
#include "ptx/Forms.h"

#include <algorithm>
#include <cstring>

using namespace gpuemu;
using Kind = OperandText::Kind;

namespace {

uint64_t alignTo(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/// Calls f for each operand, also inside of vectors and addresses.
template <typename F>
void forEach(const std::vector<OperandText> &operands, F f) {
  for (const OperandText &operand : operands) {
    f(operand);
    forEach(operand.elements, f);
  }
}

bool isCall(const Statement &statement) {
  return statement.opcode == "call" || statement.opcode == "call.uni";
}

/// The name of the function that a call calls.
const OperandText &callee(const Statement &statement) {
  for (const OperandText &operand : statement.operands)
    if (operand.kind != Kind::List) {
      if (operand.kind != Kind::Name)
        failStatement(statement, "calls through pointers are not known to the "
                                 "emulator");
      return operand;
    }
  failStatement(statement, "a call without a function");
}

} // namespace

void gpuemu::failStatement(const Statement &statement,
                           const std::string &what) {
  throw Fault(InvalidPtx, "PTX line " + std::to_string(statement.line) + ": " +
                              what + ": `" + statement.text + "`");
}

ProgramBuilder::ProgramBuilder(const ModuleText &module,
                               const FunctionText &kernel, AddressOf addressOf)
    : module(module), kernel(kernel), addressOf(std::move(addressOf)) {}

std::unique_ptr<Program> ProgramBuilder::build() {
  program->name = kernel.name;
  if (kernel.maxThreads)
    program->maxThreads = kernel.maxThreads;
  program->exactThreads = kernel.exactThreads;
  std::copy_n(kernel.exactBlock, 3, program->exactBlock);
  std::vector<const FunctionText *> path;
  collect(kernel, path);
  placeParameters();
  placeVariables();
  placeShared();
  placeRegisters();
  uint32_t start = 0;
  for (const FunctionText *function : order) {
    frames[function].start = start;
    start += uint32_t(function->statements.size()) + 1;
  }
  for (const FunctionText *function : order)
    translate(*function);
  program->registerBytes =
      program->constantStart + uint32_t(program->constants.size());
  return std::move(program);
}

void ProgramBuilder::collect(const FunctionText &function,
                             std::vector<const FunctionText *> &path) {
  if (std::find(path.begin(), path.end(), &function) != path.end())
    throw Fault(InvalidPtx, "PTX line " + std::to_string(function.line) +
                                ": the function " + function.name +
                                " calls itself, which the emulator refuses");
  if (frames.count(&function))
    return;
  path.push_back(&function);
  order.push_back(&function);
  frames[&function].text = &function;
  for (const Statement &statement : function.statements) {
    if (!isCall(statement))
      continue;
    const std::string &name = callee(statement).name;
    auto found = module.functions.find(name);
    if (found == module.functions.end() || !found->second->isDefined)
      failStatement(statement, "nothing defines the function " + name);
    collect(*found->second, path);
  }
  path.pop_back();
}

void ProgramBuilder::placeParameters() {
  uint64_t at = 0;
  for (unsigned index : kernel.parameters) {
    const Variable &variable = kernel.variables[index];
    at = alignTo(at, variable.align);
    program->parameters.push_back({uint32_t(at), uint32_t(variable.bytes)});
    at += variable.bytes;
  }
  program->parameterBytes = uint32_t(at);
}

void ProgramBuilder::placeVariables() {
  uint64_t local = 0;
  for (const FunctionText *function : order) {
    Frame &frame = frames[function];
    frame.offsets.resize(function->variables.size());
    for (size_t i = 0; i < function->variables.size(); ++i) {
      const Variable &variable = function->variables[i];
      bool isParameter =
          function->isEntry &&
          std::find(function->parameters.begin(), function->parameters.end(),
                    unsigned(i)) != function->parameters.end();
      if (isParameter) {
        size_t number =
            size_t(std::find(function->parameters.begin(),
                             function->parameters.end(), unsigned(i)) -
                   function->parameters.begin());
        frame.offsets[i] = program->parameters[number].offset;
      } else if (variable.space != Space::Shared) {
        local = alignTo(local, variable.align);
        frame.offsets[i] = local;
        local += variable.bytes;
      }
    }
  }
  program->localBytes = uint32_t(alignTo(local, 16));
}

void ProgramBuilder::placeShared() {
  uint64_t at = 0;
  std::vector<const Variable *> dynamic;
  auto place = [&](const Variable &variable) {
    if (variable.isExtern) {
      dynamic.push_back(&variable);
      return uint64_t(0);
    }
    at = alignTo(at, variable.align);
    at += variable.bytes;
    return at - variable.bytes;
  };
  for (const FunctionText *function : order) {
    for (const Statement &statement : function->statements)
      forEach(statement.operands, [&](const OperandText &operand) {
        if (operand.kind == Kind::ModuleVariable &&
            operand.variable->space == Space::Shared &&
            !sharedOffsets.count(operand.variable))
          sharedOffsets[operand.variable] = place(*operand.variable);
      });
    for (size_t i = 0; i < function->variables.size(); ++i)
      if (function->variables[i].space == Space::Shared)
        frames[function].offsets[i] = place(function->variables[i]);
  }
  // What a launch gives lies behind all that has a fixed size.
  unsigned alignment = 16;
  for (const Variable *variable : dynamic)
    alignment = std::max(alignment, variable->align);
  if (!dynamic.empty())
    at = alignTo(at, alignment);
  for (const Variable *variable : dynamic)
    sharedOffsets[variable] = at;
  program->staticShared = uint32_t(at);
}

void ProgramBuilder::placeRegisters() {
  uint64_t at = 0;
  for (const FunctionText *function : order)
    for (const Register &reg : function->registers)
      at += reg.type == Type::Pred ? 4 : 0;
  uint64_t predicate = 0, words = 0;
  at = alignTo(at, 64);
  for (const FunctionText *function : order) {
    Frame &frame = frames[function];
    for (const Register &reg : function->registers) {
      bool isPredicate = reg.type == Type::Pred;
      frame.rows.push_back(uint32_t(isPredicate ? predicate : at));
      (isPredicate ? predicate : at) +=
          isPredicate ? 4 : alignTo(32 * bytesOf(reg.type), 64);
      words += (bytesOf(reg.type) + 3) / 4;
    }
  }
  program->constantStart = uint32_t(at);
  program->specials.assign(SpecialCount, noRow);
  // Every virtual register at once: an upper bound. ptxas shares registers.
  program->registerCount = unsigned(std::clamp<uint64_t>(words, 16, 64));
}

void ProgramBuilder::translate(const FunctionText &function) {
  for (const Statement &statement : function.statements)
    translate(function, statement);
  // What runs off the end returns.
  Instruction last;
  last.flow = Flow::Return;
  last.line = function.statements.empty() ? function.line
                                          : function.statements.back().line;
  program->code.push_back(last);
  program->texts.push_back("ret");
}

void ProgramBuilder::translate(const FunctionText &function,
                               const Statement &statement) {
  Instruction x;
  x.line = statement.line;
  x.index = uint32_t(program->code.size());
  if (statement.guard >= 0) {
    x.guard = row(function, unsigned(statement.guard));
    x.guardNegated = statement.guardNegated;
  }
  const std::string &opcode = statement.opcode;
  if (opcode == "bra" || opcode == "bra.uni") {
    branch(function, statement, x);
  } else if (opcode == "brx.idx" || opcode == "brx.idx.uni") {
    branchIndexed(function, statement, x);
  } else if (isCall(statement)) {
    call(function, statement, x);
  } else {
    Operands operands(*this, function, statement, x);
    if (!FormTable::get().build(opcode, operands))
      failStatement(
          statement,
          FormTable::get().knowsName(opcode.substr(0, opcode.find('.')))
              ? "the emulator does not know the instruction with these "
                "modifiers and types"
              : "the emulator does not know the instruction");
  }
  program->code.push_back(x);
  program->texts.push_back(statement.text);
}

uint32_t ProgramBuilder::label(const FunctionText &function,
                               const Statement &statement,
                               const std::string &name) {
  auto found = function.labels.find(name);
  if (found == function.labels.end())
    failStatement(statement, "there is no label " + name);
  return frames[&function].start + found->second;
}

void ProgramBuilder::branch(const FunctionText &function,
                            const Statement &statement, Instruction &x) {
  if (statement.operands.size() != 1 ||
      statement.operands[0].kind != Kind::Name)
    failStatement(statement, "a branch needs a label");
  x.flow = Flow::Branch;
  x.value = label(function, statement, statement.operands[0].name);
}

void ProgramBuilder::branchIndexed(const FunctionText &function,
                                   const Statement &statement, Instruction &x) {
  Operands operands(*this, function, statement, x);
  operands.expect(2);
  auto found = function.branchTargets.find(operands[1].name);
  if (found == function.branchTargets.end())
    failStatement(statement, "there are no targets " + operands[1].name);
  x.flow = Flow::BranchIndexed;
  x.a = operands.source(0, Type::U32);
  x.value = int64_t(program->branchTargets.size());
  std::vector<uint32_t> targets;
  for (const std::string &name : found->second)
    targets.push_back(label(function, statement, name));
  program->branchTargets.push_back(std::move(targets));
}

void ProgramBuilder::call(const FunctionText &function,
                          const Statement &statement, Instruction &x) {
  const OperandText *results = nullptr, *arguments = nullptr;
  bool seen = false;
  for (const OperandText &operand : statement.operands) {
    if (operand.kind == Kind::List)
      (seen ? arguments : results) = &operand;
    else
      seen = true;
  }
  const FunctionText &target = *module.functions.at(callee(statement).name);
  CallSite site;
  site.target = frames[&target].start;
  site.arguments =
      copies(function, statement, arguments, target, target.parameters, false);
  site.results =
      copies(function, statement, results, target, target.results, true);
  x.flow = Flow::Call;
  x.value = int64_t(program->calls.size());
  program->calls.push_back(std::move(site));
}

std::vector<Copy>
ProgramBuilder::copies(const FunctionText &caller, const Statement &statement,
                       const OperandText *operands, const FunctionText &callee,
                       const std::vector<unsigned> &formals, bool results) {
  size_t count = operands ? operands->elements.size() : 0;
  if (count != formals.size())
    failStatement(statement, "the function " + callee.name + " takes " +
                                 std::to_string(formals.size()) + " and not " +
                                 std::to_string(count) + " operands");
  std::vector<Copy> list;
  for (size_t i = 0; i < count; ++i) {
    const OperandText &operand = operands->elements[i];
    if (operand.kind != Kind::LocalVariable)
      failStatement(statement, "operands of calls are .param variables");
    uint64_t mine = frames[&caller].offsets[operand.index];
    uint64_t yours = frames[&callee].offsets[formals[i]];
    uint64_t bytes = std::min(caller.variables[operand.index].bytes,
                              callee.variables[formals[i]].bytes);
    list.push_back({uint32_t(results ? yours : mine),
                    uint32_t(results ? mine : yours), uint32_t(bytes)});
  }
  return list;
}

uint32_t ProgramBuilder::row(const FunctionText &function, unsigned index) {
  return frames[&function].rows[index];
}

uint32_t ProgramBuilder::constantRow(uint64_t bits, unsigned bytes) {
  auto [found, isNew] = constantRows.try_emplace({bits, bytes}, 0);
  if (isNew) {
    size_t start = alignTo(program->constants.size(), 64);
    program->constants.resize(start + 32 * bytes);
    for (int n = 0; n < 32; ++n)
      memcpy(&program->constants[start + size_t(n) * bytes], &bits, bytes);
    found->second = program->constantStart + uint32_t(start);
  }
  return found->second;
}

uint32_t ProgramBuilder::sink() {
  if (sinkRow == noRow) {
    size_t start = alignTo(program->constants.size(), 64);
    program->constants.resize(start + 32 * 16);
    sinkRow = program->constantStart + uint32_t(start);
  }
  return sinkRow;
}

uint32_t ProgramBuilder::special(unsigned number) {
  uint32_t &row = program->specials[number];
  if (row == noRow) {
    size_t start = alignTo(program->constants.size(), 64);
    program->constants.resize(start + 32 * bytesOf(specialType(number)));
    row = program->constantStart + uint32_t(start);
  }
  return row;
}

uint64_t ProgramBuilder::address(const FunctionText &function,
                                 const OperandText &operand, Space &space) {
  if (operand.kind == Kind::ModuleVariable) {
    space = operand.variable->space;
    if (space == Space::Shared)
      return sharedOffsets.at(operand.variable) + operand.bits;
    return addressOf(*operand.variable) + operand.bits;
  }
  const Variable &variable = function.variables[operand.index];
  space = variable.space;
  if (space == Space::Param) {
    const auto &own = function.parameters;
    bool isParameter =
        function.isEntry &&
        std::find(own.begin(), own.end(), operand.index) != own.end();
    if (!isParameter)
      space = Space::Local;
  }
  return frames[&function].offsets[operand.index] + operand.bits;
}
