//===- Operands.cpp - Operands as forms ask for them ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ptx/Forms.h"
#include "ptx/ProgramBuilder.h"

#include <bit>

using namespace gpuemu;
using Kind = OperandText::Kind;

void Operands::fail(const std::string &what) const {
  failStatement(statement, what);
}

void Operands::expect(size_t least, size_t most) const {
  if (size() < least || size() > std::max(least, most))
    fail("expected " + std::to_string(least) +
         (most > least ? " to " + std::to_string(most) : "") +
         " operands and not " + std::to_string(size()));
}

const OperandText &Operands::operator[](size_t i) const {
  if (i >= statement.operands.size())
    fail("operand " + std::to_string(i + 1) + " is missing");
  return statement.operands[i];
}

unsigned Operands::registerBytes(const OperandText &operand) const {
  return operand.kind == Kind::Register
             ? bytesOf(function.registers[operand.index].type)
             : 0;
}

bool Operands::isPredicate(const OperandText &operand) const {
  return operand.kind == Kind::Register &&
         function.registers[operand.index].type == Type::Pred;
}

uint32_t Operands::result(const OperandText &operand, unsigned bytes) {
  if (operand.kind == Kind::Sink)
    return builder.sink();
  if (operand.kind != Kind::Register || isPredicate(operand))
    fail("a result needs a register");
  if (registerBytes(operand) != bytes)
    fail("the result has " + std::to_string(bytes) + " bytes and " +
         operand.name + " " + std::to_string(registerBytes(operand)));
  return builder.row(function, operand.index);
}

uint32_t Operands::wideResult(const OperandText &operand, Type type,
                              unsigned &registerSize) {
  registerSize = registerBytes(operand);
  if (operand.kind == Kind::Sink) {
    registerSize = std::max(bytesOf(type), 2u);
    return builder.sink();
  }
  if (registerSize < bytesOf(type))
    fail("the register " + operand.name + " is too small");
  return result(operand, registerSize);
}

uint32_t Operands::source(const OperandText &operand, Type type) {
  unsigned bytes = bytesOf(type);
  if (operand.negated)
    fail("only predicates can be negated");
  switch (operand.kind) {
  case Kind::Register:
    if (isPredicate(operand))
      fail("the predicate " + operand.name + " is no number");
    if (registerBytes(operand) != bytes)
      fail("the operand has " + std::to_string(bytes) + " bytes and " +
           operand.name + " " + std::to_string(registerBytes(operand)));
    return builder.row(function, operand.index);
  case Kind::Integer:
    if (type == Type::F32 || type == Type::F64)
      fail("an integer where a floating-point number is expected");
    return constantRow(operand.bits, bytes);
  case Kind::Float32:
    if (type == Type::F64)
      return constantRow(std::bit_cast<uint64_t>(double(
                             std::bit_cast<float>(uint32_t(operand.bits)))),
                         bytes);
    if (bytes != 4)
      fail("a number of 32 bits where another is expected");
    return constantRow(operand.bits, bytes);
  case Kind::Float64:
    if (type == Type::F32)
      return constantRow(
          std::bit_cast<uint32_t>(float(std::bit_cast<double>(operand.bits))),
          bytes);
    if (bytes != 8)
      fail("a number of 64 bits where another is expected");
    return constantRow(operand.bits, bytes);
  case Kind::Special:
    if (bytesOf(specialType(operand.index)) != bytes)
      fail("the special register " + operand.name + " has another size");
    return builder.special(operand.index);
  case Kind::ModuleVariable:
  case Kind::LocalVariable: {
    Space space = Space::Generic;
    if (bytes < 4)
      fail("an address needs 32 or 64 bits");
    return constantRow(builder.address(function, operand, space), bytes);
  }
  default:
    fail("an operand of another kind is expected");
  }
}

uint32_t Operands::wideSource(const OperandText &operand, Type type,
                              unsigned &registerSize) {
  if (operand.kind != Kind::Register) {
    registerSize = bytesOf(type);
    return source(operand, type);
  }
  registerSize = registerBytes(operand);
  if (registerSize < bytesOf(type) || isPredicate(operand))
    fail("the register " + operand.name + " does not suit");
  return builder.row(function, operand.index);
}

uint32_t Operands::predicateResult(size_t i) {
  const OperandText &operand = (*this)[i];
  if (operand.kind == Kind::Sink)
    return noRow;
  if (!isPredicate(operand))
    fail("the result is a predicate");
  return builder.row(function, operand.index);
}

uint32_t Operands::secondPredicate(size_t i) {
  const OperandText &operand = (*this)[i];
  if (operand.second < 0)
    return noRow;
  if (function.registers[size_t(operand.second)].type != Type::Pred)
    fail("no predicate after `|`");
  return builder.row(function, unsigned(operand.second));
}

uint32_t Operands::predicateSource(size_t i, bool &negated) {
  const OperandText &operand = (*this)[i];
  negated = operand.negated;
  if (operand.kind == Kind::Integer)
    return constantRow(operand.bits ? ~uint64_t(0) : 0, 4);
  if (!isPredicate(operand))
    fail("operand " + std::to_string(i + 1) + " is a predicate");
  return builder.row(function, operand.index);
}

void Operands::address(size_t i, Space &space) {
  const OperandText &operand = (*this)[i];
  if (operand.kind != Kind::Memory)
    fail("operand " + std::to_string(i + 1) + " is an address");
  x.value = int64_t(operand.bits);
  x.wide = true;
  if (space == Space::Param && !function.isEntry)
    space = Space::Local;
  if (!operand.elements.empty()) {
    const OperandText &base = operand.elements[0];
    if (base.kind == Kind::Register) {
      unsigned bytes = registerBytes(base);
      if (bytes != 4 && bytes != 8)
        fail("an address has 32 or 64 bits");
      x.a = builder.row(function, base.index);
      x.wide = bytes == 8;
    } else {
      Space own = Space::Generic;
      if (base.kind != Kind::ModuleVariable && base.kind != Kind::LocalVariable)
        fail("the name " + base.name + " is not known");
      x.value += int64_t(builder.address(function, base, own));
      bool suits = own == space || space == Space::Generic ||
                   (space == Space::Param && own == Space::Local);
      if (!suits)
        fail("the variable " + base.name + " lies in another space");
      space = own == Space::Const ? space : own;
    }
  }
  x.space = space;
}

uint64_t Operands::constant(size_t i) const {
  if ((*this)[i].kind != Kind::Integer)
    fail("operand " + std::to_string(i + 1) + " is a constant");
  return (*this)[i].bits;
}

bool Operands::isConstant(size_t i) const {
  return (*this)[i].kind == Kind::Integer;
}

uint32_t Operands::constantRow(uint64_t bits, unsigned bytes) {
  return builder.constantRow(
      bytes == 8 ? bits : bits & ((uint64_t(1) << 8 * bytes) - 1), bytes);
}

uint32_t Operands::list(const std::vector<uint32_t> &rows) {
  auto &lists = builder.program->lists;
  uint32_t start = uint32_t(lists.size());
  lists.insert(lists.end(), rows.begin(), rows.end());
  return start;
}

std::vector<uint32_t> Operands::vectorResults(size_t i, unsigned bytes,
                                              size_t count) {
  const OperandText &operand = (*this)[i];
  std::vector<uint32_t> rows;
  if (count == 1 && operand.kind != Kind::Vector)
    return {result(operand, bytes)};
  if (operand.kind != Kind::Vector || operand.elements.size() != count)
    fail("operand " + std::to_string(i + 1) + " is a vector of " +
         std::to_string(count));
  for (const OperandText &element : operand.elements)
    rows.push_back(result(element, bytes));
  return rows;
}

std::vector<uint32_t> Operands::vectorSources(size_t i, Type type,
                                              size_t count) {
  const OperandText &operand = (*this)[i];
  std::vector<uint32_t> rows;
  if (count == 1 && operand.kind != Kind::Vector)
    return {source(operand, type)};
  if (operand.kind != Kind::Vector || operand.elements.size() != count)
    fail("operand " + std::to_string(i + 1) + " is a vector of " +
         std::to_string(count));
  for (const OperandText &element : operand.elements)
    rows.push_back(source(element, type));
  return rows;
}

void Operands::markAtomic() { builder.program->hasAtomics = true; }
