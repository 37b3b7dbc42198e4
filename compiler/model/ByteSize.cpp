//===- ByteSize.cpp - Sizes as people write them --------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/model/ByteSize.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace partita {

std::optional<int64_t> parseByteSize(llvm::StringRef text) {
  text = text.trim();
  llvm::StringRef number =
      text.take_while([](char c) { return llvm::isDigit(c) || c == '.'; });
  llvm::StringRef unit = text.drop_front(number.size()).ltrim();
  double factor = llvm::StringSwitch<double>(unit)
                      .Cases({"", "B"}, 1)
                      .Cases({"kB", "KB"}, 1e3)
                      .Case("MB", 1e6)
                      .Case("GB", 1e9)
                      .Case("TB", 1e12)
                      .Cases({"KiB", "kiB"}, 1024.)
                      .Case("MiB", 1024. * 1024)
                      .Case("GiB", 1024. * 1024 * 1024)
                      .Case("TiB", 1024. * 1024 * 1024 * 1024)
                      .Default(0);
  double value = 0;
  if (number.empty() || number.getAsDouble(value))
    return std::nullopt;
  value *= factor;
  if (!(value >= 1) || value > 9e18)
    return std::nullopt;
  return static_cast<int64_t>(value);
}

} // namespace partita
