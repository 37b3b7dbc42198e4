//===- Forms.h - The instructions that the emulator knows -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An instruction is known if a form matches all of its opcode, modifiers and
// types. A form is written like the syntax in NVIDIA's manual:
//
//   add.[rn|rz|rm|rp].[ftz].[sat].f32       [a|b]: one of them, or none
//   mul.(hi|lo).(u16|u32|s32)               (a|b): one of them
//
// What no form matches is refused when a module is loaded.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_PTX_FORMS_H
#define PARTITA_TEST_GPUEMULATOR_PTX_FORMS_H

#include "machine/Program.h"
#include "ptx/Text.h"

#include <functional>
#include <unordered_map>

namespace gpuemu {

class ProgramBuilder;

/// The alternatives that an opcode takes, one for each part of the form after
/// the name; empty where an optional part is absent.
class Match {
public:
  bool has(std::string_view modifier) const;
  std::string_view operator[](size_t i) const { return parts[i]; }
  /// The type that a part names.
  Type type(size_t i) const;

private:
  friend class FormTable;
  std::vector<std::string_view> parts;
};

/// The operands of a statement, as a form asks for them. An operand that does
/// not suit throws a Fault.
class Operands {
public:
  Operands(ProgramBuilder &builder, const FunctionText &function,
           const Statement &statement, Instruction &instruction)
      : x(instruction), builder(builder), function(function),
        statement(statement) {}

  Instruction &x;

  size_t size() const { return statement.operands.size(); }
  void expect(size_t least, size_t most = 0) const;
  const OperandText &operator[](size_t i) const;

  /// A register that takes results of so many bytes, or none (`_`).
  uint32_t result(size_t i, unsigned bytes) {
    return result((*this)[i], bytes);
  }
  uint32_t result(const OperandText &operand, unsigned bytes);
  /// A result whose register may be wider than its type, as of ld and cvt.
  uint32_t wideResult(const OperandText &operand, Type type,
                      unsigned &registerBytes);
  /// A register of the type's size, or a constant.
  uint32_t source(size_t i, Type type) { return source((*this)[i], type); }
  uint32_t source(const OperandText &operand, Type type);
  uint32_t wideSource(const OperandText &operand, Type type,
                      unsigned &registerBytes);
  uint32_t predicateResult(size_t i);
  /// The predicate of `%r|%p`, or noRow.
  uint32_t secondPredicate(size_t i);
  uint32_t predicateSource(size_t i, bool &negated);
  /// Sets `a`, `wide` and `value` of the instruction. `space` is narrowed to
  /// local memory for parameters of calls.
  void address(size_t i, Space &space);
  /// An integer that is known now.
  uint64_t constant(size_t i) const;
  bool isConstant(size_t i) const;
  /// A row with a value for all lanes.
  uint32_t constantRow(uint64_t bits, unsigned bytes);
  /// Rows of the elements of a vector, in Program::lists.
  uint32_t list(const std::vector<uint32_t> &rows);
  std::vector<uint32_t> vectorResults(size_t i, unsigned bytes, size_t count);
  std::vector<uint32_t> vectorSources(size_t i, Type type, size_t count);
  unsigned registerBytes(const OperandText &operand) const;
  bool isPredicate(const OperandText &operand) const;

  void markAtomic();

  [[noreturn]] void fail(const std::string &what) const;

private:
  ProgramBuilder &builder;
  const FunctionText &function;
  const Statement &statement;
};

using Build = std::function<void(const Match &, Operands &)>;

class FormTable {
public:
  /// The one table, with all forms.
  static const FormTable &get();

  void add(std::string_view pattern, Build build);
  /// Builds the instruction. False where no form matches the opcode.
  bool build(std::string_view opcode, Operands &operands) const;
  /// Whether a form has this name, with whatever modifiers.
  bool knowsName(std::string_view name) const;

private:
  FormTable();

  struct Part {
    bool optional = false;
    std::vector<std::string> alternatives;
  };
  struct Form {
    std::vector<Part> parts;
    Build build;
  };
  static bool matches(const Form &form,
                      const std::vector<std::string_view> &words, Match &match,
                      size_t part, size_t word);

  std::unordered_map<std::string, std::vector<Form>> forms;
};

void addIntegerForms(FormTable &table);
void addBitForms(FormTable &table);
void addFloatForms(FormTable &table);
void addHalfForms(FormTable &table);
void addFunctionForms(FormTable &table);
void addCompareForms(FormTable &table);
void addMoveForms(FormTable &table);
void addConvertForms(FormTable &table);
void addMemoryForms(FormTable &table);
void addAtomicForms(FormTable &table);
void addCopyForms(FormTable &table);
void addWarpForms(FormTable &table);
void addMatrixForms(FormTable &table);
void addFlowForms(FormTable &table);

/// Calls f with a value of the C++ type that belongs to an integer type.
template <typename F> void withInteger(Type type, F f) {
  switch (type) {
  case Type::B8:
  case Type::U8:
    return f(uint8_t());
  case Type::S8:
    return f(int8_t());
  case Type::B16:
  case Type::U16:
    return f(uint16_t());
  case Type::S16:
    return f(int16_t());
  case Type::B32:
  case Type::U32:
    return f(uint32_t());
  case Type::S32:
    return f(int32_t());
  case Type::B64:
  case Type::U64:
    return f(uint64_t());
  case Type::S64:
    return f(int64_t());
  default:
    throw std::logic_error("not an integer type");
  }
}

} // namespace gpuemu

#endif // PARTITA_TEST_GPUEMULATOR_PTX_FORMS_H
