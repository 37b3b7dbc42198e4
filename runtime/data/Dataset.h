//===- Dataset.h - Samples that can be read by number -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DATA_DATASET_H
#define PARTITA_RUNTIME_DATA_DATASET_H

#include "runtime/base/Status.h"
#include "runtime/io/Tensor.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace partita::data {

/// Where samples lie in memory, which may be that of a mapped file. Samples may
/// overlap, as windows of a text do.
struct Samples {
  const uint8_t *first = nullptr;
  int64_t count = 0;  ///< may be 0
  int64_t stride = 0; ///< bytes from one sample to the next
  abi::DType dtype = abi::DType::f32;
  std::vector<int64_t> shape; ///< of one sample
  bool bigEndian = false;     ///< bytes of elements are turned when copied
  std::shared_ptr<const void> owner; ///< keeps the memory alive
};

/// `count()` samples of one tensor, all of one type and shape. For a file of
/// 60000 images, for example:
///
///   count() = 60000    dtype() = u8    sampleShape() = [28, 28]
///
/// Elements are little-endian and row-major. A dataset does not change once it
/// is made, and any number of threads may read it.
class Dataset {
public:
  /// The caller has checked that the samples lie in the owner's memory, and
  /// that the bytes of all samples can be counted (runtime::elementCount).
  Dataset(std::string name, Samples samples);
  virtual ~Dataset() = default;
  Dataset(const Dataset &) = delete;
  Dataset &operator=(const Dataset &) = delete;

  /// What messages call it, e.g. "'train.npz:images'".
  const std::string &name() const { return called; }
  int64_t count() const { return all.count; }
  abi::DType dtype() const { return all.dtype; }
  /// Without the dimension of the samples; empty for one number a sample.
  const std::vector<int64_t> &sampleShape() const { return all.shape; }
  int64_t sampleElements() const { return elements; }
  int64_t sampleBytes() const {
    return elements * runtime::elementBytes(dtype());
  }

  /// Writes the samples `first` to `first + count - 1`, one after another.
  /// Fails, and writes nothing, if one of them does not exist.
  runtime::Status read(int64_t first, int64_t count,
                       uint8_t *destination) const;

  /// Writes sample `index`, which exists, to `sampleBytes()` bytes at
  /// `destination`. Allocates nothing.
  virtual void copySample(int64_t index, uint8_t *destination) const;

private:
  std::string called;
  Samples all;
  int64_t elements; ///< of one sample
  int64_t turned;   ///< bytes of an element that are turned; 1: none
};

using DatasetPointer = std::shared_ptr<const Dataset>;

/// The samples along dimension 0 of a tensor, which are not copied. Fails for a
/// scalar.
runtime::Expected<DatasetPointer> samplesOf(const runtime::Tensor &tensor,
                                            const std::string &name,
                                            bool bigEndian = false);

} // namespace partita::data

#endif // PARTITA_RUNTIME_DATA_DATASET_H
