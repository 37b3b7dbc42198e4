//===- Lexer.h - Words and numbers of PTX -----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_PTX_LEXER_H
#define PARTITA_TEST_GPUEMULATOR_PTX_LEXER_H

#include "ptx/Types.h"

namespace gpuemu {

/// Reads a text from left to right and counts its lines.
class Lexer {
public:
  explicit Lexer(std::string_view text) : text(text) {}

  unsigned line() const { return lines; }
  bool atEnd();
  /// The next character that is neither space nor comment; 0 at the end.
  char peek();
  /// Whether `punctuation` comes next; then it is read.
  bool take(std::string_view punctuation);
  void need(std::string_view punctuation);
  /// An identifier, register, directive or opcode with its modifiers.
  std::string word();
  bool nextIsNumber();
  struct Number {
    uint64_t bits = 0;
    enum Kind : uint8_t { Integer, Float32, Float64 } kind = Integer;
  };
  Number number();
  uint64_t integer();
  std::string quoted();
  void skipLine();
  /// Reads up to the matching brace; the opening one has been read.
  void skipBraces();
  /// The text from here to the next `;`, with single spaces.
  std::string statementText();

  [[noreturn]] void fail(const std::string &what) const;

private:
  void skipSpace();

  std::string_view text;
  size_t at = 0;
  unsigned lines = 1;
};

} // namespace gpuemu

#endif // PARTITA_TEST_GPUEMULATOR_PTX_LEXER_H
