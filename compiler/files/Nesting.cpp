//===- Nesting.cpp - How deep the brackets of a text go -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/files/Nesting.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace partita::files {

Place placeOf(StringRef text, size_t at) {
  StringRef before = text.take_front(at);
  size_t line = before.rfind('\n');
  return {static_cast<int>(before.count('\n')) + 1,
          static_cast<int>(at - (line == StringRef::npos ? 0 : line + 1)) + 1};
}

std::optional<Place> findDeepBracket(StringRef text, StringRef comment) {
  int depth = 0, signs = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      while (++i < text.size() && text[i] != '"')
        i += text[i] == '\\';
      signs = 0;
      continue;
    }
    if (!comment.empty() && text.substr(i).starts_with(comment)) {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    if (isSpace(c))
      continue;
    // Arrows and comparisons are no brackets.
    const bool isArrow =
        c == '>' && i > 0 && StringRef("-=").contains(text[i - 1]);
    if (StringRef("([{<").contains(c))
      ++depth;
    else if (StringRef(")]}>").contains(c) && !isArrow)
      depth = std::max(depth - 1, 0);
    // An affine map may have any number of signs before a number, each inside
    // the one before it.
    signs = c == '-' ? signs + 1 : 0;
    if (depth > kMostNested || signs > kMostNested)
      return placeOf(text, i);
  }
  return std::nullopt;
}

std::string describeDeepBracket(const Place &place) {
  return "line " + std::to_string(place.line) + ", column " +
         std::to_string(place.column) + ": brackets are nested more than " +
         std::to_string(kMostNested) + " deep";
}

} // namespace partita::files
