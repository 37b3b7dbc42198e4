//===- Text.h - Numbers and tables for people -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compiler and the runtime print plans with these functions, so that the
// same number looks the same in both.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_ABI_TEXT_H
#define PARTITA_RUNTIME_ABI_TEXT_H

#include <cstdint>
#include <string>
#include <vector>

namespace partita::abi {

/// The value with `digits` significant digits, never with an exponent below
/// 1e9.
std::string numberText(double value, int digits = 4);
/// E.g. "640 B", "1.50 MiB": units of 1024.
std::string bytesText(int64_t bytes);
/// E.g. "128", "37.1 k", "3.20 G": units of 1000.
std::string countText(int64_t count);
/// E.g. "17.93 us", "1.067 s", "0 us".
std::string timeText(double nanoseconds);
/// E.g. "19.9%" for 0.199.
std::string percentText(double fraction);

/// E.g. "1 device", "2 devices". The noun gets `ending` unless the count is 1.
std::string countOf(int64_t count, const std::string &noun,
                    const std::string &ending = "s");

/// The text with `*` for each number: what repeated layers have in common.
std::string foldNumbers(const std::string &text);

/// At most `shown` of the names, then the number of the others: "B0, B1, +3".
std::string namesText(const std::vector<std::string> &names, size_t shown = 4);

/// Rows of cells under a header, each column as wide as its widest cell. A
/// column whose title has a `>` in front is aligned at the right.
class Table {
public:
  explicit Table(std::vector<std::string> header);
  void add(std::vector<std::string> row);
  std::string text() const;

private:
  std::vector<std::vector<std::string>> rows;
  std::vector<bool> right; ///< by column
};

} // namespace partita::abi

#endif // PARTITA_RUNTIME_ABI_TEXT_H
