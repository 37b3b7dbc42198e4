//===- NpzTarget.cpp - Fuzzes the reader of .npz archives -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/TensorPromise.h"

#include "runtime/io/Npz.h"

using namespace partita;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::MemoryFile file(data, size);
  auto tensors = runtime::readNpz(file.path());
  if (!tensors) {
    fuzz::require(!tensors.status().message().empty(),
                  "an error has a message");
    return 0;
  }
  for (const runtime::NamedTensor &item : *tensors)
    fuzz::checkTensor(item.tensor);
  return 0;
}
