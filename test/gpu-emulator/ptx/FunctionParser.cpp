//===- FunctionParser.cpp - Bodies of functions -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ptx/FunctionParser.h"

#include <algorithm>

using namespace gpuemu;

namespace {

class BodyParser {
public:
  BodyParser(Lexer &lexer, ModuleText &module, FunctionText &function)
      : lexer(lexer), module(module), function(function), scopes(1) {}

  void parameters(std::vector<unsigned> &list) {
    if (lexer.take(")"))
      return;
    do {
      std::string word = lexer.word();
      if (word == ".reg")
        lexer.fail("parameters in registers are not known to the emulator");
      if (word != ".param")
        lexer.fail("expected .param before `" + word + "`");
      list.push_back(declare(parseVariable(lexer, Space::Param)));
    } while (lexer.take(","));
    lexer.need(")");
  }

  /// `.maxntid 128, 1, 1` and its like, up to the body or the `;`.
  void attributes() {
    while (lexer.peek() == '.') {
      std::string word = lexer.word();
      if (word == ".noreturn" || word == ".explicitcluster")
        continue;
      std::vector<unsigned> values;
      if (word == ".pragma") {
        lexer.quoted();
        lexer.need(";");
        continue;
      }
      do
        values.push_back(unsigned(lexer.integer()));
      while (lexer.take(","));
      if (word == ".maxntid" || word == ".reqntid") {
        function.maxThreads = 1;
        values.resize(3, 1);
        for (unsigned value : values)
          function.maxThreads *= value;
        function.exactThreads = word == ".reqntid";
        std::copy(values.begin(), values.end(), function.exactBlock);
      } else if (word == ".reqnctapercluster" || word == ".maxclusterrank") {
        if (*std::max_element(values.begin(), values.end()) > 1)
          lexer.fail("clusters of blocks are not known to the emulator");
      } else if (word != ".minnctapersm" && word != ".maxnreg" &&
                 word != ".maxnctapersm") {
        lexer.fail("the directive " + word + " is not known to the emulator");
      }
    }
  }

  void body() {
    while (!lexer.take("}")) {
      if (lexer.take("{")) {
        scopes.emplace_back();
        body();
        scopes.pop_back();
      } else if (lexer.peek() == '.') {
        directive();
      } else {
        statement();
      }
    }
  }

private:
  struct Entry {
    bool isRegister = false;
    unsigned index = 0;
  };

  unsigned declare(Variable variable) {
    unsigned index = unsigned(function.variables.size());
    scopes.back()[variable.name] = {false, index};
    function.variables.push_back(std::move(variable));
    return index;
  }

  void directive() {
    std::string word = lexer.word();
    if (word == ".reg") {
      registers();
    } else if (word == ".shared" || word == ".local" || word == ".param") {
      declare(parseVariable(lexer, word == ".shared"  ? Space::Shared
                                   : word == ".local" ? Space::Local
                                                      : Space::Param));
      lexer.need(";");
    } else if (word == ".loc" || word == ".file") {
      lexer.skipLine();
    } else if (word == ".pragma") {
      lexer.quoted();
      lexer.need(";");
    } else {
      lexer.fail("the directive " + word + " is not known to the emulator");
    }
  }

  void registers() {
    std::string word = lexer.word();
    std::optional<Type> type;
    if (word[0] == '.')
      type = typeNamed(std::string_view(word).substr(1));
    if (!type)
      lexer.fail("registers of type " + word);
    do {
      std::string name = lexer.word();
      auto add = [&](const std::string &full) {
        scopes.back()[full] = {true, unsigned(function.registers.size())};
        function.registers.push_back({full, *type});
      };
      if (lexer.take("<")) {
        uint64_t count = lexer.integer();
        lexer.need(">");
        if (count > 1000000)
          lexer.fail("more than a million registers");
        for (uint64_t i = 0; i < count; ++i)
          add(name + std::to_string(i));
      } else {
        add(name);
      }
    } while (lexer.take(","));
    lexer.need(";");
  }

  void statement() {
    Statement result;
    result.line = lexer.line();
    if (lexer.take("@")) {
      result.guardNegated = lexer.take("!");
      const Entry *entry = find(lexer.word());
      if (!entry || !entry->isRegister ||
          function.registers[entry->index].type != Type::Pred)
        lexer.fail("the guard is no predicate");
      result.guard = int(entry->index);
    }
    result.text = lexer.statementText();
    result.line = lexer.line();
    result.opcode = lexer.word();
    if (lexer.take(":")) {
      label(result.opcode);
      return;
    }
    if (!lexer.take(";")) {
      do
        result.operands.push_back(operand());
      while (lexer.take(","));
      lexer.need(";");
    }
    function.statements.push_back(std::move(result));
  }

  void label(const std::string &name) {
    if (lexer.take(".branchtargets")) {
      do
        function.branchTargets[name].push_back(lexer.word());
      while (lexer.take(","));
      lexer.need(";");
      return;
    }
    if (!function.labels.emplace(name, unsigned(function.statements.size()))
             .second)
      lexer.fail("the label " + name + " is there twice");
  }

  OperandText operand() {
    using Kind = OperandText::Kind;
    OperandText result;
    if (lexer.take("{") || lexer.peek() == '(') {
      bool list = lexer.take("(");
      result.kind = list ? Kind::List : Kind::Vector;
      if (list && lexer.take(")"))
        return result;
      do
        result.elements.push_back(operand());
      while (lexer.take(","));
      lexer.need(list ? ")" : "}");
      return result;
    }
    if (lexer.take("[")) {
      result.kind = Kind::Memory;
      OperandText base = operand();
      if (base.kind == Kind::Integer)
        result.bits = base.bits;
      else
        result.elements.push_back(std::move(base));
      if (lexer.take("+"))
        result.bits += lexer.integer();
      else if (lexer.peek() == '-')
        result.bits += lexer.integer();
      lexer.need("]");
      return result;
    }
    if (lexer.take("!")) {
      result = operand();
      result.negated = !result.negated;
      return result;
    }
    if (lexer.nextIsNumber()) {
      Lexer::Number number = lexer.number();
      result.kind = number.kind == Lexer::Number::Integer   ? Kind::Integer
                    : number.kind == Lexer::Number::Float32 ? Kind::Float32
                                                            : Kind::Float64;
      result.bits = number.bits;
      return result;
    }
    return named();
  }

  OperandText named() {
    using Kind = OperandText::Kind;
    OperandText result;
    result.name = lexer.word();
    if (result.name == "_") {
      result.kind = Kind::Sink;
    } else if (const Entry *entry = find(result.name)) {
      result.kind = entry->isRegister ? Kind::Register : Kind::LocalVariable;
      result.index = entry->index;
    } else if (auto found = module.variables.find(result.name);
               found != module.variables.end()) {
      result.kind = Kind::ModuleVariable;
      result.variable = found->second.get();
    } else if (int special = specialRegister(result.name); special >= 0) {
      result.kind = Kind::Special;
      result.index = unsigned(special);
    } else if (result.name[0] == '%') {
      lexer.fail("the register " + result.name + " is not known");
    } else {
      result.kind = Kind::Name;
    }
    bool variable = result.kind == Kind::LocalVariable ||
                    result.kind == Kind::ModuleVariable;
    if (variable && lexer.take("+"))
      result.bits = lexer.integer();
    if (result.kind == Kind::Register && lexer.take("|")) {
      const Entry *other = find(lexer.word());
      if (!other || !other->isRegister)
        lexer.fail("no register after `|`");
      result.second = int(other->index);
    }
    return result;
  }

  const Entry *find(const std::string &name) const {
    for (size_t i = scopes.size(); i-- > 0;)
      if (auto found = scopes[i].find(name); found != scopes[i].end())
        return &found->second;
    return nullptr;
  }

  Lexer &lexer;
  ModuleText &module;
  FunctionText &function;
  std::vector<std::map<std::string, Entry>> scopes;
};

} // namespace

void gpuemu::parseFunction(Lexer &lexer, ModuleText &module, bool isEntry) {
  auto result = std::make_unique<FunctionText>();
  result->isEntry = isEntry;
  result->line = lexer.line();
  BodyParser parser(lexer, module, *result);
  if (!isEntry && lexer.take("("))
    parser.parameters(result->results);
  result->name = lexer.word();
  if (lexer.take("("))
    parser.parameters(result->parameters);
  parser.attributes();
  if (lexer.take("{")) {
    parser.body();
    result->isDefined = true;
  } else {
    lexer.need(";");
  }
  std::unique_ptr<FunctionText> &slot = module.functions[result->name];
  if (slot && slot->isDefined && result->isDefined)
    lexer.fail("the function " + result->name + " is defined twice");
  if (!slot || result->isDefined)
    slot = std::move(result);
}
