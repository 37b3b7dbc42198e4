//===- GzipReader.cpp - Decompresses gzip from memory ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/GzipReader.h"

#include <algorithm>
#include <limits>

namespace partita::data {

using runtime::Expected;
using runtime::Status;

namespace {

/// zlib counts bytes in 32 bits.
size_t portion(size_t bytes) {
  return std::min<size_t>(bytes, std::numeric_limits<uInt>::max());
}

} // namespace

bool GzipReader::recognises(std::span<const uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

uint64_t GzipReader::mostBytes(uint64_t compressed) {
  // Deflate makes at most 1032 bytes of one (258 bytes of two bits).
  return compressed * 1032 + 1024;
}

GzipReader::GzipReader(std::span<const uint8_t> compressed) : rest(compressed) {
  // 16: a gzip header, and no other.
  ready = inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK;
}

GzipReader::~GzipReader() {
  if (ready)
    inflateEnd(&stream);
}

Expected<size_t> GzipReader::inflateSome(std::span<uint8_t> destination) {
  if (!ready)
    return Status::error("there is not enough memory to decompress it");
  size_t done = 0;
  while (done < destination.size() && !ended) {
    if (stream.avail_in == 0) {
      const size_t now = portion(rest.size());
      // zlib does not write to its input.
      stream.next_in = const_cast<Bytef *>(rest.data());
      stream.avail_in = uInt(now);
      rest = rest.subspan(now);
    }
    const size_t room = portion(destination.size() - done);
    stream.next_out = destination.data() + done;
    stream.avail_out = uInt(room);
    const int code = inflate(&stream, Z_NO_FLUSH);
    done += room - stream.avail_out;
    if (code == Z_STREAM_END)
      ended = true;
    else if (code == Z_BUF_ERROR && rest.empty())
      return Status::error("it ends early");
    else if (code == Z_MEM_ERROR)
      return Status::error("there is not enough memory to decompress it");
    else if (code != Z_OK && code != Z_BUF_ERROR)
      return Status::error("its compressed data are damaged");
  }
  return done;
}

Status GzipReader::read(std::span<uint8_t> destination) {
  size_t done = PARTITA_TRY(inflateSome(destination));
  return done == destination.size() ? Status() : Status::error("it ends early");
}

Status GzipReader::finish() {
  // zlib looks at the sum when it is asked for a byte behind the last one.
  uint8_t beyond = 0;
  size_t done = PARTITA_TRY(inflateSome({&beyond, 1}));
  if (done != 0)
    return Status::error("it has more bytes than its header says");
  if (stream.avail_in != 0 || !rest.empty())
    return Status::error("something follows its compressed data");
  return Status();
}

} // namespace partita::data
