//===- Nesting.cpp - The brackets of a text -------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/files/Nesting.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <vector>

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

/// Finds brackets of YAML that are open.
class YamlScanner {
public:
  explicit YamlScanner(StringRef yaml) : text(yaml) {}

  std::optional<OpenBracket> run() {
    while (at < text.size()) {
      const char c = text[at];
      if (c == '#' && (at == 0 || isSpace(text[at - 1]))) {
        at = std::min(text.find('\n', at), text.size());
      } else if (isSpace(c) || c == ',') {
        ++at;
      } else if (c == '"' || c == '\'') {
        skipQuoted(c);
      } else if (c == '[' || c == '{') {
        open.push_back(at++);
      } else if (c == ']' || c == '}') {
        const char needed = c == ']' ? '[' : '{';
        if (!open.empty() && text[open.back()] != needed)
          return describe(" before the `" + std::string(1, c) + "` in line " +
                          std::to_string(placeOf(text, at).line));
        if (!open.empty())
          open.pop_back();
        ++at;
      } else {
        skipPlain();
      }
    }
    return open.empty() ? std::nullopt : describe("");
  }

private:
  std::optional<OpenBracket> describe(const std::string &where) {
    const char opens = text[open.back()];
    const auto [line, column] = placeOf(text, open.back());
    return OpenBracket{line, column,
                       "a `" + std::string(1, opens == '[' ? ']' : '}') +
                           "` is missing: nothing closes this `" +
                           std::string(1, opens) + "`" + where};
  }

  /// In "..." a backslash takes the next character with it; in '...' two
  /// quotes stand for one, which is the same as two texts.
  void skipQuoted(char quote) {
    for (++at; at < text.size() && text[at] != quote; ++at)
      at += quote == '"' && text[at] == '\\';
    ++at;
  }

  /// A text without quotes. Brackets end it only between other brackets: a
  /// glob in a line of its own may have some.
  void skipPlain() {
    for (; at < text.size() && text[at] != '\n'; ++at) {
      const char c = text[at];
      const bool last = at + 1 == text.size();
      if (!open.empty() && StringRef(",[]{}").contains(c))
        return;
      // What stands behind a key or a dash begins anew.
      if (StringRef(":-?").contains(c) && (last || isSpace(text[at + 1]))) {
        ++at;
        return;
      }
      if (isSpace(c) && !last && text[at + 1] == '#')
        return;
    }
  }

  StringRef text;
  size_t at = 0;
  std::vector<size_t> open; ///< places of brackets, the innermost last
};

} // namespace

std::optional<std::string> findDeepNesting(StringRef text, Syntax syntax) {
  return Scanner(text, syntax).run();
}

std::optional<OpenBracket> findOpenBracket(StringRef yaml) {
  return YamlScanner(yaml).run();
}

} // namespace partita::files
