//===- Parser.cpp - Modules of PTX ------------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "machine/Error.h"
#include "ptx/FunctionParser.h"

#include <algorithm>
#include <bit>

using namespace gpuemu;

Variable gpuemu::parseVariable(Lexer &lexer, Space space) {
  Variable result;
  result.space = space;
  while (true) {
    std::string word = lexer.word();
    if (word == ".align") {
      result.align = unsigned(lexer.integer());
      if (!std::has_single_bit(result.align))
        lexer.fail("an alignment that is no power of two");
    } else if (word == ".ptr" || word == ".global" || word == ".const" ||
               word == ".shared" || word == ".local") {
      // What a parameter points to: a promise that nothing depends on.
    } else if (word == ".attribute") {
      lexer.need("(");
      lexer.word();
      lexer.need(")");
    } else if (word[0] == '.') {
      std::optional<Type> type = typeNamed(std::string_view(word).substr(1));
      if (!type || result.type != Type::None)
        lexer.fail("`" + word + "` in the declaration of a variable");
      result.type = *type;
    } else {
      result.name = word;
      break;
    }
  }
  unsigned each = bytesOf(result.type);
  if (each == 0)
    lexer.fail("a variable without a type: " + result.name);
  uint64_t count = 1;
  bool isArray = false;
  while (lexer.take("[")) {
    isArray = true;
    if (lexer.take("]")) {
      count = 0;
      continue;
    }
    count *= lexer.integer();
    lexer.need("]");
  }
  result.bytes = count * each;
  // A parameter's alignment may be that of what it points to.
  if (space == Space::Param && !isArray)
    result.align = each;
  result.align = std::max(result.align, each);
  return result;
}

namespace {

class ModuleParser {
public:
  explicit ModuleParser(std::string_view text) : lexer(text) {}

  std::unique_ptr<ModuleText> parse() {
    while (!lexer.atEnd())
      directive();
    if (!module->architecture)
      lexer.fail("a module without .target");
    return std::move(module);
  }

private:
  void directive() {
    std::string word = lexer.word();
    bool isExtern = false;
    while (word == ".visible" || word == ".weak" || word == ".extern" ||
           word == ".common") {
      isExtern |= word == ".extern";
      word = lexer.word();
    }
    if (word == ".version") {
      version();
    } else if (word == ".target") {
      target();
    } else if (word == ".address_size") {
      if (lexer.integer() != 64)
        lexer.fail("only addresses of 64 bits");
    } else if (word == ".file" || word == ".loc") {
      lexer.skipLine();
    } else if (word == ".section") {
      lexer.word();
      lexer.need("{");
      lexer.skipBraces();
    } else if (word == ".pragma") {
      lexer.quoted();
      lexer.need(";");
    } else if (word == ".global") {
      variable(Space::Global, isExtern);
    } else if (word == ".const") {
      variable(Space::Const, isExtern);
    } else if (word == ".shared") {
      variable(Space::Shared, isExtern);
    } else if (word == ".entry" || word == ".func") {
      parseFunction(lexer, *module, word == ".entry");
    } else {
      lexer.fail("the directive " + word + " is not known to the emulator");
    }
  }

  void version() {
    // `8.10` is not a real number.
    std::string word = lexer.word();
    unsigned major = 0, minor = 0;
    if (sscanf(word.c_str(), "%u.%u", &major, &minor) != 2 || major < 6 ||
        major > 9)
      lexer.fail("PTX version " + word + " is not known to the emulator");
    module->version = major * 10 + minor;
  }

  void target() {
    do {
      std::string word = lexer.word();
      if (word.rfind("sm_", 0) == 0)
        module->architecture = unsigned(strtoul(&word[3], nullptr, 10));
      else if (word != "debug" && word != "texmode_independent")
        lexer.fail("target " + word);
    } while (lexer.take(","));
  }

  void variable(Space space, bool isExtern) {
    auto result = std::make_unique<Variable>(parseVariable(lexer, space));
    result->isExtern = isExtern;
    if (lexer.take("="))
      initialiser(*result);
    lexer.need(";");
    if (isExtern && space != Space::Shared)
      lexer.fail("nothing defines the variable " + result->name);
    std::unique_ptr<Variable> &slot = module->variables[result->name];
    if (slot)
      lexer.fail("the variable " + result->name + " is declared twice");
    module->order.push_back(result.get());
    slot = std::move(result);
  }

  void initialiser(Variable &variable) {
    uint64_t bytes = 0;
    values(variable, bytes);
    if (bytes > variable.bytes)
      lexer.fail("more initial values than " + variable.name + " has room for");
  }

  void values(Variable &variable, uint64_t &bytes) {
    if (!lexer.take("{")) {
      variable.initial.push_back(value(variable.type));
      bytes += variable.initial.back().bytes;
      return;
    }
    if (lexer.take("}"))
      return;
    do
      values(variable, bytes);
    while (lexer.take(","));
    lexer.need("}");
  }

  Initial value(Type type) {
    Initial result;
    result.bytes = bytesOf(type);
    if (lexer.nextIsNumber()) {
      Lexer::Number number = lexer.number();
      if (lexer.peek() == '(')
        lexer.fail("a byte of an address as an initial value");
      if (number.kind == Lexer::Number::Float64 && type == Type::F32)
        number.bits =
            std::bit_cast<uint32_t>(float(std::bit_cast<double>(number.bits)));
      result.bits = number.bits;
      return result;
    }
    result.variable = lexer.word();
    if (result.variable == "generic") {
      result.generic = true;
      lexer.need("(");
      result.variable = lexer.word();
      lexer.need(")");
    }
    if (result.bytes != 8)
      lexer.fail("an address needs 8 bytes");
    if (lexer.take("+"))
      result.bits = lexer.integer();
    return result;
  }

  Lexer lexer;
  std::unique_ptr<ModuleText> module = std::make_unique<ModuleText>();
};

} // namespace

std::unique_ptr<ModuleText> gpuemu::parseModule(std::string_view text) {
  return ModuleParser(text).parse();
}
