//===- IdxTarget.cpp - Fuzzes the reader of IDX files ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/DatasetPromise.h"

#include "runtime/data/Formats.h"
#include "runtime/data/GzipReader.h"

using namespace partita;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::checkDataset(data::GzipReader::recognises({data, size})
                         ? data::parseGzippedIdx({data, size}, "'x'")
                         : data::parseIdx({data, size}, nullptr, "'x'"));
  return 0;
}
