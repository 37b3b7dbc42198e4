//===- Formats.h - Samples of files of each format --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What `openDataset` chooses from, for bytes that are in memory. `name` names
// the file in messages; `owner` keeps bytes alive that are not copied.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DATA_FORMATS_H
#define PARTITA_RUNTIME_DATA_FORMATS_H

#include "runtime/data/Dataset.h"

#include <span>
#include <string_view>

namespace partita::data {

//===----------------------------------------------------------------------===//
// .csv: a text with a line of names first, and a line for each sample:
//
//   length,width,kind      columns {"kind"}: samples of shape [1]
//   5.1,3.5,0              columns {}: all of them, samples of shape [3]
//   4.9,3.0,1
//
// Fields are separated by commas and may be quoted, as in RFC 4180. Columns
// that are not asked for may hold anything. Blanks around a field, empty lines
// and a byte order mark are skipped.
//===----------------------------------------------------------------------===//

struct CsvOptions {
  /// In the order in which samples have them; none stands for all.
  std::vector<std::string> columns;
  abi::DType dtype = abi::DType::f32; ///< f32, f64 or i64
};

/// Reads the numbers into memory: at most one element for a byte of the text.
/// Errors name line and column.
runtime::Expected<DatasetPointer> parseCsv(std::string_view text,
                                           const CsvOptions &options,
                                           const std::string &name);

//===----------------------------------------------------------------------===//
// IDX, the format of MNIST and its like: two zero bytes, a byte for the type of
// the elements, a byte for the number of dimensions; each dimension as a
// big-endian u32; the elements, big-endian, row-major. Dimension 0 counts
// samples.
//
//   00 00 08 03  00 00 ea 60  00 00 00 1c  00 00 00 1c  ...    u8 [60000, 28,
//   28]
//===----------------------------------------------------------------------===//

/// Whether bytes begin as an IDX file does: the zeros, and a type that is
/// known.
bool isIdx(std::span<const uint8_t> bytes);

/// The samples of an IDX file, which are not copied.
runtime::Expected<DatasetPointer> parseIdx(std::span<const uint8_t> bytes,
                                           std::shared_ptr<const void> owner,
                                           const std::string &name);

/// The same for a file that gzip has compressed. It is decompressed into
/// memory, which is taken only if the compressed bytes can fill it.
runtime::Expected<DatasetPointer>
parseGzippedIdx(std::span<const uint8_t> compressed, const std::string &name);

//===----------------------------------------------------------------------===//
// Tokens: nothing but numbers, u16 or u32, little-endian: a text, as a
// tokenizer has left it. Samples are windows of it:
//
//   tokens            7  1  8  2  8  1  8  2  8
//   window 3: inputs  [7  1  8][2  8  1]           targets  [1  8  2][8  1  8]
//   stride 1: inputs  [7  1  8] [1  8  2] [8  2  8] ...
//===----------------------------------------------------------------------===//

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
/// It is 0 for a shorter text.
runtime::Expected<DatasetPointer> parseTokens(std::span<const uint8_t> bytes,
                                              std::shared_ptr<const void> owner,
                                              const TokenOptions &options,
                                              const std::string &name);

} // namespace partita::data

#endif // PARTITA_RUNTIME_DATA_FORMATS_H
