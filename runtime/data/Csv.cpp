//===- Csv.cpp - Columns of numbers ---------------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Formats.h"

#include "runtime/base/NearestName.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace partita::data {

using abi::DType;
using runtime::Expected;
using runtime::Status;
using runtime::Tensor;

namespace {

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

/// A field as a message shows it: its beginning, and no control characters.
std::string shown(std::string_view field) {
  constexpr size_t kMost = 40;
  std::string text(field.substr(0, kMost));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, '?');
  return "'" + text + (field.size() > kMost ? "..." : "") + "'";
}

struct Field {
  std::string_view text;
  bool endsLine = false;
};

/// Takes fields off the front of a text.
class Reader {
public:
  explicit Reader(std::string_view text) : text(text) {
    if (text.starts_with("\xef\xbb\xbf"))
      this->text.remove_prefix(3);
  }

  bool atEnd() const { return text.empty(); }
  /// The line of the next field, counted from 1.
  int64_t line() const { return lines; }

  void skipEmptyLines() {
    while (!text.empty()) {
      const size_t end = text.find_first_not_of(" \t\r");
      if (end == std::string_view::npos) {
        text = {};
        return;
      }
      if (text[end] != '\n')
        return;
      ++lines;
      text.remove_prefix(end + 1);
    }
  }

  /// The next field. Of a quoted one what is between the quotes. Returns why it
  /// is none, or null.
  const char *next(Field &field) {
    size_t begin = text.find_first_not_of(" \t");
    if (begin != std::string_view::npos && text[begin] == '"') {
      text.remove_prefix(begin + 1);
      return nextQuoted(field);
    }
    size_t end = std::min(text.find_first_of(",\n"), text.size());
    field.text = text.substr(0, end);
    if (!field.text.empty() && field.text.back() == '\r')
      field.text.remove_suffix(1);
    field.text = trimmed(field.text);
    endField(field, end);
    return nullptr;
  }

private:
  const char *nextQuoted(Field &field) {
    size_t end = 0;
    for (;; end += 2) {
      end = text.find('"', end);
      if (end == std::string_view::npos)
        return "a quote is not closed";
      if (end + 1 >= text.size() || text[end + 1] != '"')
        break; // two quotes stand for one
    }
    field.text = text.substr(0, end);
    const int64_t inside =
        std::count(field.text.begin(), field.text.end(), '\n');
    text.remove_prefix(end + 1);
    size_t after = std::min(text.find_first_not_of(" \t\r"), text.size());
    if (after < text.size() && text[after] != ',' && text[after] != '\n')
      return "something follows a closed quote";
    lines += inside;
    endField(field, after);
    return nullptr;
  }

  /// `end`: where the comma or the end of the line is.
  void endField(Field &field, size_t end) {
    field.endsLine = end == text.size() || text[end] == '\n';
    if (end < text.size() && text[end] == '\n')
      ++lines;
    text.remove_prefix(std::min(end + 1, text.size()));
  }

  std::string_view text;
  int64_t lines = 1;
};

std::string unescaped(std::string_view field) {
  std::string text;
  for (size_t i = 0; i < field.size(); ++i) {
    text += field[i];
    if (field[i] == '"' && i + 1 < field.size() && field[i + 1] == '"')
      ++i;
  }
  return text;
}

/// Why `field` is not a number of this type, or null.
template <typename T> const char *readNumber(std::string_view field, T &value) {
  constexpr bool isWhole = std::is_integral_v<T>;
  auto [end, error] =
      std::from_chars(field.data(), field.data() + field.size(), value);
  if (error == std::errc::result_out_of_range) {
    if constexpr (std::is_same_v<T, float>) {
      // Too large or too small: only a wider type tells.
      double wide = 0;
      if (readNumber(field, wide) || std::abs(wide) > 1)
        return "does not fit into f32";
      value = float(wide);
      return nullptr;
    }
    return isWhole ? "does not fit into i64" : "does not fit into f64";
  }
  if (error != std::errc() || end != field.data() + field.size())
    return isWhole ? "is not a whole number" : "is not a number";
  return nullptr;
}

/// Where the columns that are asked for are in a line.
struct Columns {
  std::vector<std::string> names; ///< of all columns
  std::vector<int64_t> places;    ///< by column: its place in a sample, or -1
  int64_t chosen = 0;
};

Expected<Columns> readNames(Reader &reader,
                            const std::vector<std::string> &wanted) {
  Columns columns;
  reader.skipEmptyLines();
  if (reader.atEnd())
    return Status::error("it is empty; its first line must name its columns");
  for (Field field; !field.endsLine;) {
    if (const char *why = reader.next(field))
      return Status::error("line " + std::to_string(reader.line()) + ": " +
                           why);
    columns.names.push_back(unescaped(field.text));
  }
  if (wanted.empty()) {
    columns.chosen = int64_t(columns.names.size());
    for (int64_t i = 0; i < columns.chosen; ++i)
      columns.places.push_back(i);
    return columns;
  }
  columns.places.assign(columns.names.size(), -1);
  for (const std::string &name : wanted) {
    auto found = std::find(columns.names.begin(), columns.names.end(), name);
    if (found == columns.names.end())
      return Status::error(runtime::unknownName("column", name, columns.names));
    if (std::find(found + 1, columns.names.end(), name) != columns.names.end())
      return Status::error("two columns have the name '" + name +
                           "'; rename one of them");
    int64_t &place = columns.places[size_t(found - columns.names.begin())];
    if (place >= 0)
      return Status::error("column '" + name + "' is named twice");
    place = columns.chosen++;
  }
  return columns;
}

/// Reads a line of `columns` into `row`.
template <typename T>
Status readLine(Reader &reader, const Columns &columns, T *row) {
  const int64_t line = reader.line();
  auto wrong = [&](size_t column, const std::string &what) {
    return Status::error("line " + std::to_string(line) + ", column '" +
                         columns.names[column] + "': " + what);
  };
  Field field;
  size_t i = 0;
  for (; i < columns.places.size() && !field.endsLine; ++i) {
    if (const char *why = reader.next(field))
      return wrong(i, why);
    if (columns.places[i] < 0)
      continue;
    if (field.text.empty())
      return wrong(i, "there is no number; fill it in, or leave out the line");
    std::string_view digits = field.text;
    if (digits.front() == '+' && digits.size() > 1 && digits[1] != '-')
      digits.remove_prefix(1);
    if (const char *why = readNumber(digits, row[columns.places[i]]))
      return wrong(i, shown(field.text) + " " + why +
                          "; choose columns of numbers, e.g. "
                          "'FILE.csv:COLUMN,COLUMN'");
  }
  if (i < columns.places.size())
    return Status::error("line " + std::to_string(line) + ": it has " +
                         std::to_string(i) + " of " +
                         std::to_string(columns.places.size()) + " columns; '" +
                         columns.names[i] + "' is missing");
  if (!field.endsLine)
    return Status::error(
        "line " + std::to_string(line) + ": it has more than the " +
        std::to_string(columns.places.size()) + " columns of the first line");
  return Status();
}

template <typename T>
Expected<Tensor> readRows(Reader &reader, const Columns &columns, DType dtype,
                          std::string_view text) {
  // A line of c columns has at least c characters with its end, and fewer lines
  // than the text has ends. So the memory is bounded by the size of the text,
  // however many columns or lines there seem to be.
  const int64_t byLength =
      int64_t(text.size()) / int64_t(columns.names.size()) + 1;
  const int64_t byEnds = std::count(text.begin(), text.end(), '\n') + 1;
  Tensor room = PARTITA_TRY(
      Tensor::allocate(dtype, {std::min(byLength, byEnds), columns.chosen}));
  int64_t rows = 0;
  T *row = reinterpret_cast<T *>(room.mutableData());
  for (reader.skipEmptyLines(); !reader.atEnd(); reader.skipEmptyLines()) {
    PARTITA_TRY(readLine(reader, columns, row));
    row += columns.chosen;
    ++rows;
  }
  const uint8_t *numbers = room.data();
  return Tensor::refer(dtype, {rows, columns.chosen}, numbers,
                       std::make_shared<Tensor>(std::move(room)));
}

} // namespace

Expected<DatasetPointer> parseCsv(std::string_view text,
                                  const CsvOptions &options,
                                  const std::string &name) {
  const std::string cannotRead = "cannot read " + name + ": ";
  Reader reader(text);
  const Columns columns =
      PARTITA_TRY(within(cannotRead, readNames(reader, options.columns)));
  auto read = options.dtype == DType::f32   ? readRows<float>
              : options.dtype == DType::f64 ? readRows<double>
              : options.dtype == DType::i64 ? readRows<int64_t>
                                            : nullptr;
  if (!read)
    return Status::error(cannotRead +
                         "its numbers are read as f32, f64 or i64, not " +
                         abi::EnumNameDType(options.dtype));
  const Tensor rows = PARTITA_TRY(
      within(cannotRead, read(reader, columns, options.dtype, text)));
  return samplesOf(rows, name);
}

} // namespace partita::data
