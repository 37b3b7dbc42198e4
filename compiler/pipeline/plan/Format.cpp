//===- Format.cpp - Numbers and tables for people -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/plan/Format.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Format.h"

using llvm::StringRef;

namespace partita::pipeline {

std::string formatCount(int64_t value) {
  static const char *prefixes[] = {"", "k", "M", "G", "T"};
  double scaled = value;
  int prefix = 0;
  while (scaled >= 1000 && prefix < 4) {
    scaled /= 1000;
    ++prefix;
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  if (prefix == 0)
    os << value;
  else
    os << llvm::format(scaled < 10    ? "%.2f"
                       : scaled < 100 ? "%.1f"
                                      : "%.0f",
                       scaled);
  os << ' ' << prefixes[prefix];
  return StringRef(text).rtrim().str();
}

std::string formatTime(double ns) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (ns < 1e6)
    os << llvm::format("%.1f us", ns / 1e3);
  else if (ns < 1e9)
    os << llvm::format("%.2f ms", ns / 1e6);
  else
    os << llvm::format("%.2f s", ns / 1e9);
  return text;
}

void printRows(const std::vector<std::vector<std::string>> &rows,
               llvm::function_ref<bool(size_t)> isNumber,
               llvm::raw_ostream &os) {
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const std::vector<std::string> &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  for (const std::vector<std::string> &row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      std::string pad(widths[i] - row[i].size(), ' ');
      line += (i ? "  " : "") + (isNumber(i) ? pad + row[i] : row[i] + pad);
    }
    os << StringRef(line).rtrim() << '\n';
  }
}

} // namespace partita::pipeline
