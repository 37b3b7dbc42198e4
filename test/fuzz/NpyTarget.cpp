//===- NpyTarget.cpp - Fuzzes the reader of .npy files --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first byte names the element type that is expected, if any.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/TensorPromise.h"

#include "runtime/io/Npy.h"

using namespace partita;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  std::optional<abi::DType> expected;
  if (data[0] <= static_cast<uint8_t>(abi::DType::MAX))
    expected = static_cast<abi::DType>(data[0]);
  fuzz::checkTensor(
      runtime::parseNpy({data + 1, size - 1}, nullptr, "'x'", expected));
  return 0;
}
