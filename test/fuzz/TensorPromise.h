//===- TensorPromise.h - What holds of any tensor read ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_FUZZ_TENSORPROMISE_H
#define PARTITA_TEST_FUZZ_TENSORPROMISE_H

#include "test/fuzz/Target.h"

#include "runtime/io/Tensor.h"

namespace partita::fuzz {

/// Size and shape agree, and every byte can be read.
inline void checkTensor(const runtime::Tensor &tensor) {
  auto count = runtime::elementCount(tensor.shape());
  require(count && *count == tensor.elements(), "a tensor has its elements");
  require(tensor.bytes() == *count * runtime::elementBytes(tensor.dtype()),
          "a tensor has its bytes");
  volatile uint8_t sum = 0;
  for (int64_t i = 0; i < tensor.bytes(); ++i)
    sum = sum + tensor.data()[i];
}

inline void checkTensor(const runtime::Expected<runtime::Tensor> &tensor) {
  if (tensor)
    checkTensor(*tensor);
  else
    require(!tensor.status().message().empty(), "an error has a message");
}

} // namespace partita::fuzz

#endif // PARTITA_TEST_FUZZ_TENSORPROMISE_H
