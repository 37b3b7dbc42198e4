//===- Nesting.h - The brackets of a text -----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parsers of JSON, of MLIR and of ONNX's text form call themselves for what
// stands in brackets, and too many brackets overflow the stack. Such a text is
// refused before it is parsed. Of YAML it is found which bracket nothing
// closes.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_FILES_NESTING_H
#define PARTITA_COMPILER_FILES_NESTING_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace partita::files {

/// How deep what is read may be nested. A machine file has less than ten
/// levels, and a protobuf message at most as many.
inline constexpr int kMostNested = 100;
/// How many operators an expression may have: a parser may call itself for
/// each.
inline constexpr int kMostOperators = 1000;

struct Place {
  int line = 1, column = 1;
};

/// The line and the column of a byte, both counted from 1. A column is one
/// byte.
Place placeOf(llvm::StringRef text, size_t at);

/// What brackets mean in a text.
enum class Syntax {
  json,
  onnx, ///< comments begin with #
  mlir, ///< comments begin with //; aliases (#a = [1]) stand for brackets
};

/// Says where brackets are nested deeper than kMostNested, or where there are
/// more than kMostOperators; nothing if that is nowhere. Strings and comments
/// do not count.
std::optional<std::string> findDeepNesting(llvm::StringRef text, Syntax syntax);

struct OpenBracket {
  int line, column; ///< of the bracket that is not closed, from 1
  std::string message;
};

/// The innermost bracket, [ or {, that is open where the text ends or where a
/// bracket of the other kind closes. LLVM's parser says of neither what is
/// missing, as it goes on with whatever stands on the next line.
std::optional<OpenBracket> findOpenBracket(llvm::StringRef yaml);

} // namespace partita::files

#endif // PARTITA_COMPILER_FILES_NESTING_H
