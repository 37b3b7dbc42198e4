//===- Npy.h - NumPy's .npy files -------------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The format is numpy.lib.format, versions 1.0, 2.0 and 3.0. Readers take bool,
// integers and floats of either byte order, in C or Fortran order (converted to
// C order). NumPy has no name for bfloat16 and the one-byte floats, and stores
// them as raw bytes ('|V2', '|V1'). Such a file can only be read if its type is
// known. Writers use C order, little-endian, version 1.0.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_IO_NPY_H
#define PARTITA_RUNTIME_IO_NPY_H

#include "runtime/io/Tensor.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace partita::runtime {

/// Reads a .npy file. `expected` is the type of the port the array is meant
/// for; it gives raw bytes their type. An int8 array may also be read as int4
/// or int2, if its values fit. No other type that the file names is converted.
Expected<Tensor> readNpy(const std::string &path,
                         std::optional<abi::DType> expected = std::nullopt);

/// The same from memory. `owner` keeps `bytes` alive. `where` names them in
/// messages.
Expected<Tensor> parseNpy(std::span<const uint8_t> bytes,
                          std::shared_ptr<const void> owner,
                          const std::string &where,
                          std::optional<abi::DType> expected = std::nullopt);

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

/// Magic, version and header for `tensor`, padded so that the following data
/// are 64-byte aligned.
std::string npyHeader(const Tensor &tensor);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_IO_NPY_H
