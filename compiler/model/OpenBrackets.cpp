//===- OpenBrackets.cpp - Brackets of YAML that nothing closes ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/model/OpenBrackets.h"

#include "compiler/files/Nesting.h"

#include "llvm/ADT/StringExtras.h"

#include <vector>

using namespace llvm;

namespace partita {

namespace {

class Scanner {
public:
  explicit Scanner(StringRef yaml) : text(yaml) {}

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
                          std::to_string(files::placeOf(text, at).line));
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
    const auto [line, column] = files::placeOf(text, open.back());
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

std::optional<OpenBracket> findOpenBracket(StringRef yaml) {
  return Scanner(yaml).run();
}

} // namespace partita
