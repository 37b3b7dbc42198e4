//===- GzipReader.h - Decompresses gzip from memory -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DATA_GZIPREADER_H
#define PARTITA_RUNTIME_DATA_GZIPREADER_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <span>
#include <zlib.h>

namespace partita::data {

/// One gzip stream, read from its front. Messages of errors do not name the
/// file, e.g. "it ends early".
class GzipReader {
public:
  /// Whether bytes begin as a gzip file does.
  static bool recognises(std::span<const uint8_t> bytes);

  /// `compressed` must outlive the reader.
  explicit GzipReader(std::span<const uint8_t> compressed);
  ~GzipReader();
  GzipReader(const GzipReader &) = delete;
  GzipReader &operator=(const GzipReader &) = delete;

  /// The next `destination.size()` bytes, all of them.
  runtime::Status read(std::span<uint8_t> destination);
  /// Fails if the stream has further bytes, if its sum is wrong, or if anything
  /// follows it.
  runtime::Status finish();

  /// No stream of `compressed` bytes has more bytes than this. What a header
  /// claims beyond it must not decide how much memory is taken.
  static uint64_t mostBytes(uint64_t compressed);

private:
  /// Decompresses into `destination`, as much as there is; returns how much.
  runtime::Expected<size_t> inflateSome(std::span<uint8_t> destination);

  z_stream stream = {};
  std::span<const uint8_t> rest; ///< not yet given to zlib
  bool ready = false;
  bool ended = false;
};

} // namespace partita::data

#endif // PARTITA_RUNTIME_DATA_GZIPREADER_H
