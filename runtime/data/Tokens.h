//===- Tokens.h - Windows of a text's tokens --------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file of tokens is nothing but numbers, u16 or u32, little-endian: a text,
// as a tokenizer has left it. Samples are windows of it:
//
//   tokens            7  1  8  2  8  1  8  2  8
//   window 3: inputs  [7  1  8][2  8  1]           targets  [1  8  2][8  1  8]
//   stride 1: inputs  [7  1  8] [1  8  2] [8  2  8] ...
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DATA_TOKENS_H
#define PARTITA_RUNTIME_DATA_TOKENS_H

#include "runtime/data/Dataset.h"

#include <memory>

namespace partita::data {

struct TokenOptions {
  abi::DType dtype = abi::DType::u16; ///< u16 or u32
  int64_t window = 0;                 ///< tokens of a sample; at least 1
  /// Tokens from the beginning of a sample to that of the next: `window` for
  /// one window after another, 1 for a window at every position.
  int64_t stride = 0;
  /// Sample i has the tokens that follow those of sample i of the inputs.
  bool targets = false;
};

/// The windows of a file, which is not copied. Every sample has a target, so
/// inputs and targets have the same number: a window needs `window + 1` tokens.
/// It is 0 for a shorter text. `owner` keeps `bytes` alive.
runtime::Expected<std::shared_ptr<const Dataset>>
parseTokens(std::span<const uint8_t> bytes, std::shared_ptr<const void> owner,
            const TokenOptions &options, const std::string &name);

} // namespace partita::data

#endif // PARTITA_RUNTIME_DATA_TOKENS_H
