//===- Idx.h - The files of MNIST -------------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// IDX is the format of MNIST and its like: two zero bytes, a byte for the type
// of the elements, a byte for the number of dimensions; each dimension as a
// big-endian u32; the elements, big-endian, row-major. Dimension 0 counts
// samples.
//
//   00 00 08 03  00 00 ea 60  00 00 00 1c  00 00 00 1c  ...    u8 [60000, 28,
//   28]
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DATA_IDX_H
#define PARTITA_RUNTIME_DATA_IDX_H

#include "runtime/data/Dataset.h"

#include <memory>

namespace partita::data {

/// Whether bytes begin as an IDX file does: the zeros, and a type that is
/// known.
bool isIdx(std::span<const uint8_t> bytes);

/// The samples of an IDX file, which are not copied. `owner` keeps `bytes`
/// alive. `name` names the file in messages.
runtime::Expected<std::shared_ptr<const Dataset>>
parseIdx(std::span<const uint8_t> bytes, std::shared_ptr<const void> owner,
         const std::string &name);

/// The same for a file that gzip has compressed. It is decompressed into
/// memory, which is taken only if the compressed bytes can fill it.
runtime::Expected<std::shared_ptr<const Dataset>>
parseGzippedIdx(std::span<const uint8_t> compressed, const std::string &name);

} // namespace partita::data

#endif // PARTITA_RUNTIME_DATA_IDX_H
