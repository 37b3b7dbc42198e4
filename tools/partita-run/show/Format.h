//===- Format.h - Numbers and tables for people -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_SHOW_FORMAT_H
#define PARTITA_TOOLS_PARTITA_RUN_SHOW_FORMAT_H

#include <cstdint>
#include <string>
#include <vector>

namespace partita::run {

/// E.g. "1.50 MiB".
std::string bytesText(int64_t bytes);
/// E.g. "3.20 GFLOP"; the unit grows with the number.
std::string flopsText(int64_t flops);
/// E.g. "0.123 ms", "4.56 s".
std::string timeText(double nanoseconds);
/// With `digits` significant digits, never with an exponent below 1e9.
std::string numberText(double value, int digits = 4);

/// Rows of cells under a header, each column as wide as its widest cell. The
/// columns named in `right` are aligned at the right.
class Table {
public:
  Table(std::vector<std::string> header, std::vector<bool> right);
  void add(std::vector<std::string> row);
  std::string text() const;

private:
  std::vector<std::vector<std::string>> rows;
  std::vector<bool> right;
};

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_SHOW_FORMAT_H
