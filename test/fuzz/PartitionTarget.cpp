//===- PartitionTarget.cpp - Fuzzes the reader of partition files ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Target.h"

#include "compiler/model/PartitionFile.h"

using namespace partita;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int errors = 0;
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  auto file = parsePartitionFile(
      text, [&](int line, int column, const std::string &message) {
        ++errors;
        fuzz::require(line >= 0 && column >= 0, "a place is one of the file");
        fuzz::require(!message.empty(), "an error has a message");
      });
  fuzz::require(errors == (failed(file) ? 1 : 0),
                "a wrong file has one error, a right one none");
  if (failed(file) || !file->stages)
    return 0;
  fuzz::require(file->devices.empty() ||
                    file->devices.size() == file->stages->size(),
                "there is a device for each stage");
  return 0;
}
