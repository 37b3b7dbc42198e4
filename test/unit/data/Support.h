//===- Support.h - Samples for the tests of runtime/data --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_DATA_SUPPORT_H
#define PARTITA_TEST_UNIT_DATA_SUPPORT_H

#include "test/unit/io/Support.h"

#include "runtime/data/Dataset.h"

namespace partita::data::testing {

using namespace partita::runtime::testing;

using DatasetPointer = std::shared_ptr<const Dataset>;

/// The elements of samples `first` to `first + count - 1`.
template <typename T>
std::vector<T> elementsOf(const Dataset &dataset, int64_t first,
                          int64_t count) {
  EXPECT_EQ(runtime::elementBytes(dataset.dtype()), int64_t(sizeof(T)));
  std::vector<T> values(size_t(count * dataset.sampleElements()));
  runtime::Status status =
      dataset.read(first, count, reinterpret_cast<uint8_t *>(values.data()));
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

template <typename T> std::vector<T> allOf(const Dataset &dataset) {
  return elementsOf<T>(dataset, 0, dataset.count());
}

/// A dataset of these values, the first dimension of `shape` counting samples.
template <typename T>
DatasetPointer makeDataset(abi::DType dtype, std::vector<int64_t> shape,
                           const std::vector<T> &values,
                           const std::string &name = "'made'") {
  return *samplesOf(makeTensor<T>(dtype, std::move(shape), values), name);
}

} // namespace partita::data::testing

#endif // PARTITA_TEST_UNIT_DATA_SUPPORT_H
