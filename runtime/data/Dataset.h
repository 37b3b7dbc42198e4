//===- Dataset.h - Samples that can be read by number -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DATA_DATASET_H
#define PARTITA_RUNTIME_DATA_DATASET_H

#include "runtime/base/Status.h"
#include "runtime/io/DType.h"

#include <cstdint>
#include <string>
#include <vector>

namespace partita::data {

/// `count()` samples of one tensor, all of one type and shape. For a file of
/// 60000 images, for example:
///
///   count() = 60000    dtype() = u8    sampleShape() = [28, 28]
///
/// Elements are little-endian and row-major. A dataset does not change once it
/// is made, and any number of threads may read it.
class Dataset {
public:
  virtual ~Dataset() = default;
  Dataset(const Dataset &) = delete;
  Dataset &operator=(const Dataset &) = delete;

  /// What messages call it, e.g. "'train.npz:images'".
  const std::string &name() const { return called; }
  /// The number of samples; may be 0.
  int64_t count() const { return samples; }
  abi::DType dtype() const { return type; }
  /// Without the dimension of the samples; empty for one number a sample.
  const std::vector<int64_t> &sampleShape() const { return shape; }
  int64_t sampleElements() const { return elements; }
  int64_t sampleBytes() const { return elements * runtime::elementBytes(type); }

  /// Writes the samples `first` to `first + count - 1`, one after another.
  /// Fails, and writes nothing, if one of them does not exist.
  runtime::Status read(int64_t first, int64_t count,
                       uint8_t *destination) const;

  /// Writes sample `index`, which exists, to `sampleBytes()` bytes at
  /// `destination`. Allocates nothing if it succeeds.
  virtual runtime::Status copySample(int64_t index,
                                     uint8_t *destination) const = 0;

protected:
  /// The caller has checked that the bytes of all samples can be counted
  /// (runtime::elementCount).
  Dataset(std::string name, int64_t count, abi::DType dtype,
          std::vector<int64_t> sampleShape);

private:
  std::string called;
  int64_t samples;
  abi::DType type;
  std::vector<int64_t> shape;
  int64_t elements;
};

} // namespace partita::data

#endif // PARTITA_RUNTIME_DATA_DATASET_H
