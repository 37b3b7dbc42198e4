//===- TensorProtoTarget.cpp - Fuzzes the reader of .pb files -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/MessageMutator.h"
#include "test/fuzz/TensorPromise.h"

#include "runtime/io/TensorProtoFile.h"
#include "runtime/io/tensor.pb.h"

using namespace partita;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto tensor = runtime::parseTensorProto({data, size}, "'x'");
  if (tensor)
    fuzz::checkTensor(tensor->tensor);
  else
    fuzz::require(!tensor.status().message().empty(), "an error has a message");
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed) {
  io::TensorFile file;
  return fuzz::mutateMessage(file, data, size, most, seed);
}
