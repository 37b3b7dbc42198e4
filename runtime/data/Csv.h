//===- Csv.h - Columns of numbers -------------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A text with a line of names first, and a line for each sample:
//
//   length,width,kind      columns {"kind"}: samples of shape [1]
//   5.1,3.5,0              columns {}: all of them, samples of shape [3]
//   4.9,3.0,1
//
// Fields are separated by commas and may be quoted, as in RFC 4180. Columns
// that are not asked for may hold anything. Blanks around a field, empty lines
// and a byte order mark are skipped.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DATA_CSV_H
#define PARTITA_RUNTIME_DATA_CSV_H

#include "runtime/data/Dataset.h"

#include <memory>
#include <string_view>

namespace partita::data {

struct CsvOptions {
  /// In the order in which samples have them; none stands for all.
  std::vector<std::string> columns;
  abi::DType dtype = abi::DType::f32; ///< f32, f64 or i64
};

/// Reads the numbers into memory: at most one element for a byte of the text.
/// Errors name line and column.
runtime::Expected<std::shared_ptr<const Dataset>>
parseCsv(std::string_view text, const CsvOptions &options,
         const std::string &name);

} // namespace partita::data

#endif // PARTITA_RUNTIME_DATA_CSV_H
