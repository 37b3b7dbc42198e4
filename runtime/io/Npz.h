//===- Npz.h - NumPy's .npz archives ----------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A .npz file is a zip of .npy files. Readers take stored and deflated entries,
// as numpy.savez and numpy.savez_compressed write them. Writers store the
// entries, with zip64 when needed. They write no times, so that equal tensors
// give equal files.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_IO_NPZ_H
#define PARTITA_RUNTIME_IO_NPZ_H

#include "runtime/io/Tensor.h"

#include <functional>
#include <string>
#include <vector>

namespace partita::runtime {

/// Returns the element type that the array with this name is meant for, if it
/// is known; see readNpy.
using ExpectedType =
    std::function<std::optional<abi::DType>(const std::string &name)>;

/// All arrays of the archive, in its order.
Expected<std::vector<NamedTensor>> readNpz(const std::string &path,
                                           const ExpectedType &expected = {});

/// The array called `name`; with an empty name, the only one. The error for
/// another name lists those of the archive. No other array is decompressed.
Expected<NamedTensor>
readNpzArray(const std::string &path, const std::string &name,
             std::optional<abi::DType> expected = std::nullopt);

/// Writes the archive beside `path` and renames it.
Status writeNpz(const std::string &path,
                const std::vector<NamedTensor> &tensors);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_IO_NPZ_H
