//===- CsvTarget.cpp - Fuzzes the reader of columns -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first byte says the type of the numbers, and whether column "b" is read
// alone.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/DatasetPromise.h"

#include "runtime/data/Formats.h"

using namespace partita;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  constexpr abi::DType kTypes[] = {abi::DType::f32, abi::DType::f64,
                                   abi::DType::i64};
  data::CsvOptions options;
  options.dtype = kTypes[data[0] / 2 % 3];
  if (data[0] % 2)
    options.columns = {"b"};
  fuzz::checkDataset(data::parseCsv(
      {reinterpret_cast<const char *>(data + 1), size - 1}, options, "'x'"));
  return 0;
}
