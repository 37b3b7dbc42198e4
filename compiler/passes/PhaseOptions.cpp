//===- PhaseOptions.cpp - Options of a phase, and their text --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/PhaseOptions.h"

#include "llvm/Support/Format.h"

namespace partita::passes {

void writeValue(llvm::raw_ostream &os, llvm::StringRef value) {
  const bool splits =
      value.empty() || value.find_first_of(" ,'\"{}") != llvm::StringRef::npos;
  const char quote = value.contains('"') ? '\'' : '"';
  if (splits)
    os << quote << value << quote;
  else
    os << value;
}

void writeValue(llvm::raw_ostream &os, bool value) {
  os << (value ? "true" : "false");
}

void writeValue(llvm::raw_ostream &os, int value) { os << value; }

void writeValue(llvm::raw_ostream &os, int64_t value) { os << value; }

/// All digits, so that the same number is read.
void writeValue(llvm::raw_ostream &os, double value) {
  os << llvm::format("%.17g", value);
}

void writeValues(llvm::raw_ostream &os, const std::vector<std::string> &texts,
                 char comma) {
  std::string all;
  for (std::string text : texts) {
    std::replace(text.begin(), text.end(), ',', comma);
    all += (all.empty() ? "" : ",") + text;
  }
  // Quotes around a list are taken away before it is split.
  if (all.find_first_of(" '\"{}") != std::string::npos)
    writeValue(os, llvm::StringRef(all));
  else
    os << all;
}

std::string PhaseOptions::toText() const {
  std::string text;
  for (const auto &write : writers) {
    std::string option;
    llvm::raw_string_ostream os(option);
    if (write(os))
      text += (text.empty() ? "" : " ") + option;
  }
  return text;
}

} // namespace partita::passes
