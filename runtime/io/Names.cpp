//===- Names.cpp - Names that files can bear ------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Names.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace partita::runtime {

std::vector<std::string> fileNames(const std::vector<std::string> &names) {
  std::vector<std::string> result;
  std::set<std::string> taken;
  for (const std::string &name : names) {
    std::string safe;
    // Most file systems end at 255 bytes; leave room for suffixes.
    for (char c : name.substr(0, 200))
      safe += std::isalnum(static_cast<unsigned char>(c)) || c == '.' ||
                      c == '_' || c == '-'
                  ? c
                  : '_';
    if (safe.empty() || safe[0] == '.' || safe[0] == '-')
      safe.insert(safe.begin(), '_');
    std::string unique = safe;
    for (int k = 2; !taken.insert(unique).second; ++k)
      unique = safe + "_" + std::to_string(k);
    result.push_back(unique);
  }
  return result;
}

std::vector<std::string> uniqueNames(const std::vector<std::string> &names) {
  std::set<std::string> taken(names.begin(), names.end());
  std::set<std::string> seen;
  std::vector<std::string> result;
  for (const std::string &name : names) {
    std::string unique = name;
    if (!seen.insert(name).second)
      for (int k = 1; !taken.insert(unique).second; ++k)
        unique = name + "." + std::to_string(k);
    result.push_back(unique);
  }
  return result;
}

} // namespace partita::runtime
