//===- OpenDataset.h - Samples of a file, whatever its format ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DATA_OPENDATASET_H
#define PARTITA_RUNTIME_DATA_OPENDATASET_H

#include "runtime/data/Dataset.h"

#include <memory>
#include <optional>

namespace partita::data {

struct DatasetOptions {
  /// What of the file is wanted: the array of an .npz, columns of a .csv,
  /// "inputs" (default) or "targets" of tokens.
  std::vector<std::string> parts;
  /// The type of tokens (u16 or u32, by default u16), of the numbers of a .csv
  /// (f32, f64 or i64, by default f32), or of an array that NumPy stores as raw
  /// bytes (bf16, float8). Files that say their type themselves must have it.
  std::optional<abi::DType> dtype;
  std::optional<int64_t> window; ///< tokens of a sample; see TokenOptions
  std::optional<int64_t> stride; ///< by default `window`
};

/// The samples of a file. A name that ends in .bin is one of tokens, and .csv
/// one of columns. Other formats are known by their first bytes: IDX, also
/// compressed by gzip; .npy; .npz.
///
/// Files of tokens, .npy and IDX are mapped, and samples are read from them
/// when they are copied. All others are in memory afterwards. An array of a
/// .npy file that would have to be converted as a whole (Fortran order,
/// big-endian) is an error.
runtime::Expected<DatasetPointer>
openDataset(const std::string &path, const DatasetOptions &options = {});

} // namespace partita::data

#endif // PARTITA_RUNTIME_DATA_OPENDATASET_H
