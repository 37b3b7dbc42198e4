//===- NpyHeader.cpp - The dictionary at the head of a .npy file ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Npy.h"

#include <charconv>
#include <cstring>
#include <optional>

namespace partita::runtime {

namespace {

constexpr size_t kMaxRank = 64; // NumPy 2's own limit

/// Reads Python literals off the front of a text.
class Reader {
public:
  explicit Reader(std::string_view text) : text(text) {}

  void skipSpace() {
    while (!text.empty() && (text[0] == ' ' || text[0] == '\n' ||
                             text[0] == '\t' || text[0] == '\r'))
      text.remove_prefix(1);
  }
  bool take(char c) {
    skipSpace();
    if (text.empty() || text[0] != c)
      return false;
    text.remove_prefix(1);
    return true;
  }
  bool takeWord(std::string_view word) {
    skipSpace();
    if (!text.starts_with(word))
      return false;
    text.remove_prefix(word.size());
    return true;
  }
  std::optional<std::string> string() {
    skipSpace();
    if (text.empty() || (text[0] != '\'' && text[0] != '"'))
      return std::nullopt;
    size_t end = text.find(text[0], 1);
    if (end == std::string_view::npos ||
        text.substr(0, end).find('\\') != std::string_view::npos)
      return std::nullopt;
    std::string value(text.substr(1, end - 1));
    text.remove_prefix(end + 1);
    return value;
  }
  std::optional<bool> boolean() {
    if (takeWord("True"))
      return true;
    if (takeWord("False"))
      return false;
    return std::nullopt;
  }
  std::optional<int64_t> integer() {
    skipSpace();
    int64_t value = 0;
    auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value < 0)
      return std::nullopt;
    text.remove_prefix(size_t(end - text.data()));
    takeWord("L"); // written by Python 2
    return value;
  }
  std::optional<std::vector<int64_t>> shape() {
    if (!take('('))
      return std::nullopt;
    std::vector<int64_t> dims;
    while (!take(')')) {
      std::optional<int64_t> dim = integer();
      if (!dim || dims.size() == kMaxRank)
        return std::nullopt;
      dims.push_back(*dim);
      if (!take(',')) {
        // "(3)" is a number in Python, not a shape.
        if (dims.size() == 1 || !take(')'))
          return std::nullopt;
        break;
      }
    }
    return dims;
  }
  bool atEnd() {
    skipSpace();
    return text.empty();
  }

private:
  std::string_view text;
};

} // namespace

Expected<NpyHeader> parseNpyHeader(std::string_view text) {
  Reader reader(text);
  std::optional<std::string> descr;
  std::optional<bool> fortranOrder;
  std::optional<std::vector<int64_t>> shape;
  const Status malformed = Status::error(
      "its header is not the dictionary that NumPy writes (descr, "
      "fortran_order, shape)");
  if (!reader.take('{'))
    return malformed;
  while (!reader.take('}')) {
    std::optional<std::string> key = reader.string();
    if (!key || !reader.take(':'))
      return malformed;
    bool read = false;
    if (*key == "descr" && !descr) {
      if (reader.take('['))
        return Status::error("it holds records with fields, not numbers");
      read = (descr = reader.string()).has_value();
    } else if (*key == "fortran_order" && !fortranOrder) {
      read = (fortranOrder = reader.boolean()).has_value();
    } else if (*key == "shape" && !shape) {
      read = (shape = reader.shape()).has_value();
    }
    if (!read)
      return malformed;
    if (!reader.take(',')) {
      if (!reader.take('}'))
        return malformed;
      break;
    }
  }
  if (!reader.atEnd() || !descr || !fortranOrder || !shape)
    return malformed;
  return NpyHeader{*descr, *fortranOrder, *shape};
}

Expected<NpyHeader> readNpyHeader(std::span<const uint8_t> bytes, size_t &end) {
  const size_t magic = kNpyMagic.size();
  if (bytes.size() < magic + 2 ||
      std::memcmp(bytes.data(), kNpyMagic.data(), magic) != 0)
    return Status::error("it is not a .npy file");
  const int major = bytes[magic];
  if (major < 1 || major > 3)
    return Status::error("its format version " + std::to_string(major) +
                         " is not known");
  const size_t lengthBytes = major == 1 ? 2 : 4;
  size_t position = magic + 2;
  if (bytes.size() < position + lengthBytes)
    return Status::error("it ends within its header");
  uint64_t length = 0;
  for (size_t i = 0; i < lengthBytes; ++i)
    length |= uint64_t(bytes[position + i]) << (8 * i);
  position += lengthBytes;
  if (length > bytes.size() - position)
    return Status::error("it ends within its header");
  end = position + size_t(length);
  return parseNpyHeader(
      {reinterpret_cast<const char *>(bytes.data() + position),
       size_t(length)});
}

} // namespace partita::runtime
