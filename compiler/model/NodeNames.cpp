//===- NodeNames.cpp - Globs over node names, and nearest names -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/model/NodeNames.h"

#include <algorithm>
#include <map>
#include <optional>

using namespace mlir;

namespace partita {

std::string didYouMean(StringRef name, ArrayRef<StringRef> known) {
  StringRef best;
  unsigned limit = std::max<size_t>(2, name.size() / 2), distance = limit + 1;
  for (StringRef candidate : known) {
    unsigned d = name.edit_distance_insensitive(candidate, true, distance);
    if (d < distance) {
      distance = d;
      best = candidate;
    }
  }
  if (distance > limit)
    return "";
  return ("; did you mean '" + best + "'?").str();
}

static constexpr StringLiteral kSpecial = "*?[]{}\\";

std::string escapeGlob(StringRef name) {
  std::string pattern;
  for (char c : name) {
    if (kSpecial.contains(c))
      pattern += '\\';
    pattern += c;
  }
  return pattern;
}

std::optional<std::string> getPlainName(StringRef pattern) {
  std::string name;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size())
      ++i;
    else if (kSpecial.contains(pattern[i]))
      return std::nullopt;
    name += pattern[i];
  }
  return name;
}

/// Lengths of prefixes worth a glob: those that end at a separator, so that a
/// glob stands for a part of the model and not for an accident of spelling.
static std::vector<size_t> getPrefixes(StringRef name) {
  std::vector<size_t> lengths;
  for (size_t i = 1; i < name.size(); ++i)
    if (StringRef("/._:").contains(name[i - 1]))
      lengths.push_back(i);
  return lengths;
}

std::vector<std::vector<std::string>>
compactNames(const std::vector<std::vector<std::string>> &lists) {
  // Which list owns a prefix (-1: several), and how many of its names it has.
  std::map<std::string, std::pair<int, int>> owners;
  for (auto [index, names] : llvm::enumerate(lists))
    for (const std::string &name : names)
      for (size_t length : getPrefixes(name)) {
        auto [it, isNew] = owners.emplace(name.substr(0, length),
                                          std::pair<int, int>(int(index), 0));
        if (it->second.first != int(index))
          it->second.first = -1;
        ++it->second.second;
      }
  std::vector<std::vector<std::string>> result;
  for (auto [index, names] : llvm::enumerate(lists)) {
    std::vector<std::string> &patterns = result.emplace_back();
    for (const std::string &name : names) {
      std::string pattern = escapeGlob(name);
      for (size_t length : getPrefixes(name)) {
        auto [owner, count] = owners.at(name.substr(0, length));
        if (owner != int(index) || count < 2)
          continue;
        pattern = escapeGlob(StringRef(name).take_front(length)) + "*";
        break;
      }
      patterns.push_back(pattern);
    }
  }
  return result;
}

} // namespace partita
