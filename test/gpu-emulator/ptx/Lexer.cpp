//===- Lexer.cpp - Words and numbers of PTX ---------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ptx/Lexer.h"

#include "machine/Error.h"

#include <bit>
#include <cctype>
#include <cstdlib>

using namespace gpuemu;

namespace {

bool isSpace(char c) { return isspace(static_cast<unsigned char>(c)); }
bool isDigit(char c) { return isdigit(static_cast<unsigned char>(c)); }
bool isHex(char c) { return isxdigit(static_cast<unsigned char>(c)); }
bool isWord(char c) {
  return isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' ||
         c == '%' || c == '.';
}

} // namespace

void Lexer::fail(const std::string &what) const {
  throw Fault(InvalidPtx, "PTX line " + std::to_string(lines) + ": " + what);
}

void Lexer::skipSpace() {
  while (at < text.size()) {
    if (isSpace(text[at])) {
      lines += text[at++] == '\n';
    } else if (text.substr(at, 2) == "//") {
      skipLine();
    } else if (text.substr(at, 2) == "/*") {
      size_t end = text.find("*/", at);
      if (end == std::string_view::npos)
        fail("a comment that does not end");
      for (; at < end + 2; ++at)
        lines += text[at] == '\n';
    } else {
      return;
    }
  }
}

bool Lexer::atEnd() {
  skipSpace();
  return at == text.size() || text[at] == '\0';
}

char Lexer::peek() { return atEnd() ? '\0' : text[at]; }

bool Lexer::take(std::string_view punctuation) {
  skipSpace();
  if (text.substr(at, punctuation.size()) != punctuation)
    return false;
  at += punctuation.size();
  return true;
}

void Lexer::need(std::string_view punctuation) {
  if (!take(punctuation))
    fail("expected `" + std::string(punctuation) + "` before `" +
         std::string(text.substr(at, 20)) + "`");
}

std::string Lexer::word() {
  skipSpace();
  size_t start = at;
  // `::` is a part of modifiers like `.shared::cta`; `:` ends a label.
  while (at < text.size()) {
    if (isWord(text[at]))
      ++at;
    else if (text.substr(at, 2) == "::")
      at += 2;
    else
      break;
  }
  if (at == start)
    fail("unexpected `" + std::string(text.substr(at, 20)) + "`");
  return std::string(text.substr(start, at - start));
}

bool Lexer::nextIsNumber() {
  char c = peek();
  return isDigit(c) || c == '-' ||
         (c == '.' && at + 1 < text.size() && isDigit(text[at + 1]));
}

Lexer::Number Lexer::number() {
  skipSpace();
  Number result;
  bool negative = take("-");
  skipSpace();
  auto hexadecimal = [&](size_t digits) {
    at += 2;
    uint64_t value = 0;
    for (size_t i = 0; i < digits; ++i, ++at) {
      if (at == text.size() || !isHex(text[at]))
        fail("a floating-point number needs " + std::to_string(digits) +
             " hexadecimal digits");
      char c = text[at];
      value = value << 4 | uint64_t(isDigit(c) ? c - '0' : (c | 32) - 'a' + 10);
    }
    return value;
  };
  char kind = at + 1 < text.size() && text[at] == '0' ? text[at + 1] | 32 : 0;
  if (kind == 'f') {
    result.kind = Number::Float32;
    result.bits = hexadecimal(8) ^ (negative ? uint64_t(1) << 31 : 0);
    return result;
  }
  if (kind == 'd') {
    result.kind = Number::Float64;
    result.bits = hexadecimal(16) ^ (negative ? uint64_t(1) << 63 : 0);
    return result;
  }
  std::string digits;
  bool isReal = false;
  for (size_t i = at; i < text.size(); ++i) {
    char c = text[i];
    bool exponent = kind != 'x' && (c == 'e' || c == 'E') && !digits.empty();
    bool sign = (c == '+' || c == '-') && isReal && !digits.empty() &&
                (digits.back() | 32) == 'e';
    if (!(isHex(c) || c == '.' || c == 'x' || c == 'X' || exponent || sign))
      break;
    isReal |= c == '.' || exponent;
    digits += c;
  }
  if (digits.empty())
    fail("expected a number before `" + std::string(text.substr(at, 20)) + "`");
  char *end = nullptr;
  if (isReal) {
    double value = strtod(digits.c_str(), &end);
    result.kind = Number::Float64;
    result.bits = std::bit_cast<uint64_t>(negative ? -value : value);
  } else {
    bool binary = kind == 'b';
    result.bits =
        strtoull(digits.c_str() + (binary ? 2 : 0), &end, binary ? 2 : 0);
    if (negative)
      result.bits = -result.bits;
  }
  at += size_t(end - digits.c_str());
  if (at < text.size() && text[at] == 'U')
    ++at;
  return result;
}

uint64_t Lexer::integer() {
  Number value = number();
  if (value.kind != Number::Integer)
    fail("expected an integer");
  return value.bits;
}

std::string Lexer::quoted() {
  need("\"");
  size_t start = at;
  while (at < text.size() && text[at] != '"')
    lines += text[at++] == '\n';
  std::string result(text.substr(start, at - start));
  need("\"");
  return result;
}

void Lexer::skipLine() {
  while (at < text.size() && text[at] != '\n')
    ++at;
}

void Lexer::skipBraces() {
  for (int depth = 1; depth > 0; ++at) {
    skipSpace();
    if (at == text.size())
      fail("a brace is not closed");
    depth += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
  }
}

std::string Lexer::statementText() {
  skipSpace();
  std::string result;
  for (size_t i = at; i < text.size() && text[i] != ';'; ++i) {
    bool space = isSpace(text[i]);
    if (!space || (!result.empty() && result.back() != ' '))
      result += space ? ' ' : text[i];
  }
  return result;
}
