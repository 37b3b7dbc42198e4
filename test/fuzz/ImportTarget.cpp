//===- ImportTarget.cpp - Fuzzes the importer of ONNX models --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/ModelInput.h"

using namespace partita;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::ModelInput input(data, size);
  auto module = import::importOnnxModel(input.context(), input.options());
  input.checkErrors(failed(module));
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed) {
  return fuzz::mutateModel(data, size, most, seed);
}
