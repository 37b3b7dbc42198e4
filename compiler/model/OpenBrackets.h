//===- OpenBrackets.h - Brackets of YAML that nothing closes ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_MODEL_OPENBRACKETS_H
#define PARTITA_COMPILER_MODEL_OPENBRACKETS_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace partita {

struct OpenBracket {
  int line, column; ///< of the bracket that is not closed, from 1
  std::string message;
};

/// The innermost bracket, [ or {, that is open where the text ends or where a
/// bracket of the other kind closes. LLVM's parser says of neither what is
/// missing, as it goes on with whatever stands on the next line.
std::optional<OpenBracket> findOpenBracket(llvm::StringRef yaml);

} // namespace partita

#endif // PARTITA_COMPILER_MODEL_OPENBRACKETS_H
