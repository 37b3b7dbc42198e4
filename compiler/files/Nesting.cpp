//===- Nesting.cpp - How deep the brackets of a text go -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/files/Nesting.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;

namespace partita::files {

Place placeOf(StringRef text, size_t at) {
  StringRef before = text.take_front(at);
  size_t line = before.rfind('\n');
  return {static_cast<int>(before.count('\n')) + 1,
          static_cast<int>(at - (line == StringRef::npos ? 0 : line + 1)) + 1};
}

namespace {

class Scanner {
public:
  Scanner(StringRef text, Syntax syntax)
      : text(text), isMlir(syntax == Syntax::mlir),
        comment(isMlir                   ? "//"
                : syntax == Syntax::onnx ? "#"
                                         : "") {}

  std::optional<std::string> run() {
    for (; at < text.size(); ++at) {
      const char c = text[at];
      // An operation ends the definition of an alias.
      if (depth == 0 && beginsLine() &&
          (isAlpha(c) || StringRef("_%\"").contains(c))) {
        defined = nullptr;
        reached = 0;
      }
      if (c == '"') {
        skipString();
      } else if (!comment.empty() && text.substr(at).starts_with(comment)) {
        at = std::min(text.find('\n', at), text.size()) - 1;
      } else if (isMlir && (c == '#' || c == '!')) {
        readAlias();
      } else if (isMlir && (isAlpha(c) || c == '_')) {
        readWord();
      } else if (StringRef("([{<").contains(c)) {
        ++depth;
      } else if (StringRef(")]}>").contains(c) && !isArrow()) {
        depth = std::max(depth - 1, 0);
      } else if (StringRef("+*-").contains(c)) {
        operators += isMlir;
      }
      // An expression ends there.
      if (StringRef(",{}%@#!\"").contains(c))
        operators = 0;
      reached = std::max(reached, depth);
      if (defined)
        *defined = std::max(*defined, reached);
      if (reached > kMostNested)
        return describe("brackets are nested more than " +
                        std::to_string(kMostNested) + " deep");
      if (operators > kMostOperators)
        return describe("an expression has more than " +
                        std::to_string(kMostOperators) + " operators");
    }
    return std::nullopt;
  }

private:
  std::string describe(const std::string &what) const {
    const Place place = placeOf(text, at);
    return "line " + std::to_string(place.line) + ", column " +
           std::to_string(place.column) + ": " + what;
  }

  void skipString() {
    while (++at < text.size() && text[at] != '"')
      at += text[at] == '\\';
  }

  /// -> and => are no brackets.
  bool isArrow() const {
    return text[at] == '>' && at > 0 && StringRef("-=").contains(text[at - 1]);
  }

  StringRef takeName() {
    StringRef name = text.substr(at).take_while(
        [](char c) { return isAlnum(c) || StringRef("_.$-").contains(c); });
    at += name.size() - 1;
    return name;
  }

  bool beginsLine() const { return at == 0 || text[at - 1] == '\n'; }

  void readWord() {
    StringRef word = text.substr(at).take_while(
        [](char c) { return isAlnum(c) || c == '_'; });
    at += word.size() - 1;
    operators += word == "mod" || word == "floordiv" || word == "ceildiv";
  }

  /// An alias is as deep as what it stands for.
  void readAlias() {
    const bool begins = beginsLine();
    if (++at == text.size())
      return;
    StringRef name = takeName();
    if (begins && depth == 0 &&
        text.substr(at + 1).ltrim(" \t").starts_with("=")) {
      defined = &depthOf[name];
      reached = 0;
      return;
    }
    reached = std::max(reached, depth + depthOf.lookup(name));
  }

  const StringRef text;
  const bool isMlir;
  const StringRef comment;
  size_t at = 0;
  int depth = 0, reached = 0, operators = 0;
  StringMap<int> depthOf; ///< of an alias, by its name
  int *defined = nullptr; ///< of the alias that is being defined
};

} // namespace

std::optional<std::string> findDeepNesting(StringRef text, Syntax syntax) {
  return Scanner(text, syntax).run();
}

} // namespace partita::files
