//===- Text.cpp - Numbers and tables for people ---------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace partita::abi {

namespace {

std::string scaled(double value, double step,
                   const std::vector<const char *> &units) {
  size_t unit = 0;
  while (std::fabs(value) >= step && unit + 1 < units.size()) {
    value /= step;
    ++unit;
  }
  return numberText(value, 3) + " " + units[unit];
}

/// Characters a terminal shows, for UTF-8: all but continuation bytes.
size_t width(const std::string &text) {
  return size_t(std::count_if(text.begin(), text.end(),
                              [](char c) { return (c & 0xC0) != 0x80; }));
}

} // namespace

std::string numberText(double value, int digits) {
  if (!std::isfinite(value))
    return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  char text[64];
  double magnitude = std::fabs(value);
  if (magnitude >= 1e9 || (magnitude > 0 && magnitude < 1e-6)) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    return text;
  }
  int whole = magnitude >= 1 ? int(std::log10(magnitude)) + 1 : 1;
  std::snprintf(text, sizeof text, "%.*f", std::max(0, digits - whole), value);
  return text;
}

std::string bytesText(int64_t bytes) {
  if (bytes < 1024)
    return std::to_string(bytes) + " B";
  return scaled(double(bytes), 1024, {"B", "KiB", "MiB", "GiB", "TiB"});
}

std::string countText(int64_t count) {
  if (count < 1000)
    return std::to_string(count);
  return scaled(double(count), 1000, {"", "k", "M", "G", "T", "P"});
}

std::string timeText(double nanoseconds) {
  if (nanoseconds == 0)
    return "0 us";
  if (nanoseconds < 1e6)
    return numberText(nanoseconds / 1e3) + " us";
  if (nanoseconds < 1e9)
    return numberText(nanoseconds / 1e6) + " ms";
  return numberText(nanoseconds / 1e9) + " s";
}

std::string percentText(double fraction) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f%%", 100 * fraction);
  return text;
}

std::string countOf(int64_t count, const std::string &noun,
                    const std::string &ending) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : ending);
}

std::string foldNumbers(const std::string &text) {
  std::string folded;
  bool inNumber = false;
  for (const char c : text) {
    const bool isDigit = c >= '0' && c <= '9';
    if (!isDigit || !inNumber)
      folded += isDigit ? '*' : c;
    inNumber = isDigit;
  }
  return folded;
}

std::string namesText(const std::vector<std::string> &names, size_t shown) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), shown); ++i)
    text += (i ? ", " : "") + names[i];
  if (names.size() > shown)
    text += ", +" + std::to_string(names.size() - shown);
  return text;
}

Table::Table(std::vector<std::string> header) {
  for (std::string &title : header) {
    right.push_back(title.starts_with('>'));
    title.erase(0, right.back());
  }
  rows.push_back(std::move(header));
}

void Table::add(std::vector<std::string> row) {
  row.resize(rows[0].size());
  rows.push_back(std::move(row));
}

std::string Table::text() const {
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const std::vector<std::string> &row : rows)
    for (size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], width(row[c]));
  std::string result;
  for (const std::vector<std::string> &row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      std::string padding(widths[c] - width(row[c]), ' ');
      line += (c ? "  " : "");
      line += right[c] ? padding + row[c] : row[c] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + "\n";
  }
  return result;
}

} // namespace partita::abi
