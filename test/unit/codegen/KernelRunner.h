//===- KernelRunner.h - Compile a cluster and run it ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_CODEGEN_KERNELRUNNER_H
#define PARTITA_TEST_UNIT_CODEGEN_KERNELRUNNER_H

#include "gtest/gtest.h"

#include <cstring>
#include <string>
#include <vector>

namespace partita::codegen::test {

using Bytes = std::vector<char>;

template <typename T> Bytes toBytes(const std::vector<T> &values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!values.empty())
    std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <typename T> std::vector<T> fromBytes(const Bytes &bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty())
    std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// Pseudo-random numbers between -range and range, always the same ones.
std::vector<float> makeNumbers(size_t count, float range = 4);

/// Compiles the only cluster of a function and runs it on the inputs three
/// times: over the whole range, one iteration at a time in reverse order, and
/// in thirds. Fails the test unless all runs give the same bits. Returns the
/// results.
std::vector<Bytes> runCluster(const std::string &function,
                              const std::vector<Bytes> &inputs);

/// The same for a cluster with the ops of `body`. `types` is its function type,
/// e.g. "(tensor<4xf32>) -> tensor<4xf32>". Operands are %0, %1, .... The body
/// ends in nn.yield.
std::vector<Bytes> runOps(const std::string &types, const std::string &body,
                          const std::vector<Bytes> &inputs);

void expectNear(const std::vector<float> &actual,
                const std::vector<float> &expected, double relative,
                double absolute);

} // namespace partita::codegen::test

#endif // PARTITA_TEST_UNIT_CODEGEN_KERNELRUNNER_H
