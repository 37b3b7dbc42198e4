//===- StridedDataset.h - Samples at equal distances in memory --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DATA_STRIDEDDATASET_H
#define PARTITA_RUNTIME_DATA_STRIDEDDATASET_H

#include "runtime/data/Dataset.h"
#include "runtime/io/Tensor.h"

#include <memory>

namespace partita::data {

/// Where samples lie in memory, which may be that of a mapped file. Samples may
/// overlap, as windows of a text do.
struct Samples {
  const uint8_t *first = nullptr;
  int64_t count = 0;
  int64_t stride = 0; ///< bytes from one sample to the next
  abi::DType dtype = abi::DType::f32;
  std::vector<int64_t> shape; ///< of one sample
  bool bigEndian = false;     ///< bytes of elements are turned when copied
  std::shared_ptr<const void> owner; ///< keeps the memory alive
};

/// The dataset that all readers of files make.
class StridedDataset : public Dataset {
public:
  /// The caller has checked that the samples lie in the owner's memory.
  StridedDataset(std::string name, Samples samples);

  runtime::Status copySample(int64_t index,
                             uint8_t *destination) const override;

private:
  const uint8_t *first;
  int64_t stride;
  int64_t turned; ///< bytes of an element that are turned; 1: none
  std::shared_ptr<const void> owner;
};

/// The samples along dimension 0 of a tensor, which are not copied. Fails for a
/// scalar.
runtime::Expected<std::shared_ptr<const Dataset>>
samplesOf(const runtime::Tensor &tensor, const std::string &name);

} // namespace partita::data

#endif // PARTITA_RUNTIME_DATA_STRIDEDDATASET_H
