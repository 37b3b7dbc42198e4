//===- NpyHeader.h - The dictionary at the head of a .npy file --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_IO_NPYHEADER_H
#define PARTITA_RUNTIME_IO_NPYHEADER_H

#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace partita::runtime {

/// The first bytes of every .npy file.
inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

struct NpyHeader {
  std::string descr; ///< e.g. "<f4"
  bool fortranOrder = false;
  std::vector<int64_t> shape;
};

/// Parses the text of the dictionary. It must have exactly the keys 'descr',
/// 'fortran_order' and 'shape', in any order, with Python literals. The message
/// of an error does not name the file, e.g. "its header has no 'shape'".
Expected<NpyHeader> parseNpyHeader(std::string_view text);

/// Reads magic, version and dictionary at the front of a .npy file. `end` is
/// then where the elements begin. Messages are as above.
Expected<NpyHeader> readNpyHeader(std::span<const uint8_t> bytes, size_t &end);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_IO_NPYHEADER_H
