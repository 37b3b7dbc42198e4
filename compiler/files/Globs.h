//===- Globs.h - What the globs of an option name ---------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_FILES_GLOBS_H
#define PARTITA_COMPILER_FILES_GLOBS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/GlobPattern.h"

#include <optional>
#include <string>
#include <vector>

namespace partita::files {

/// Globs of one option, and which of them matched something.
class Globs {
public:
  /// `unused`: what an error says of a glob that has matched nothing.
  Globs(llvm::StringRef option, llvm::ArrayRef<std::string> texts,
        llvm::StringRef unused =
            "names no parameter; --list-parameters lists them")
      : option(option), unused(unused) {
    for (const std::string &text : texts)
      patterns.push_back({text, std::nullopt, false});
  }

  mlir::LogicalResult compile(mlir::Location loc) {
    for (Pattern &pattern : patterns) {
      auto glob = llvm::GlobPattern::create(pattern.text, 64);
      if (!glob)
        return mlir::emitError(loc) << option << " " << pattern.text << ": "
                                    << llvm::toString(glob.takeError());
      pattern.glob = std::move(*glob);
    }
    return mlir::success();
  }

  bool empty() const { return patterns.empty(); }

  bool match(llvm::StringRef name) {
    bool any = false;
    for (Pattern &pattern : patterns)
      if (pattern.glob->match(name))
        any = pattern.used = true;
    return any;
  }

  mlir::LogicalResult checkUse(mlir::Location loc) {
    for (const Pattern &pattern : patterns)
      if (!pattern.used)
        return mlir::emitError(loc)
               << option << " " << pattern.text << " " << unused;
    return mlir::success();
  }

private:
  struct Pattern {
    std::string text;
    std::optional<llvm::GlobPattern> glob;
    bool used;
  };
  const llvm::StringRef option, unused;
  std::vector<Pattern> patterns;
};

} // namespace partita::files

#endif // PARTITA_COMPILER_FILES_GLOBS_H
