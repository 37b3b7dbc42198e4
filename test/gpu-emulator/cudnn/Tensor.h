//===- Tensor.h - A tensor on a device --------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_CUDNN_TENSOR_H
#define PARTITA_TEST_GPUEMULATOR_CUDNN_TENSOR_H

#include "cudnn/Cudnn.h"

#include <string>
#include <vector>

namespace gpuemu::cudnn {

/// Dimensions and strides in elements, [N, C, spatial..].
struct Tensor {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<int64_t> shape, strides;
  int64_t id = 0, alignment = 0;
  bool isVirtual = false, isByValue = false;

  bool operator==(const Tensor &) const = default;

  int64_t count() const;
  size_t bytes() const;
  size_t elementBytes() const;
  /// Whether the elements lie without gaps, in some order.
  bool isPacked() const;
  /// Whether they lie so in the order of the dimensions.
  bool isPlain() const;
  /// Whether no two of them lie at one place.
  bool isDisjoint() const;
};

/// Memory that is none of the device's, in words.
struct Wrong {
  std::string what;
};

/// All elements, as they lie. Throws `Wrong`.
std::vector<float> read(const Tensor &tensor, uint64_t address,
                        const char *name);
void write(const Tensor &tensor, uint64_t address, const char *name,
           const std::vector<float> &values);

/// Elements that lie one after another, from the place `at` on.
std::vector<float> readRow(const Tensor &tensor, uint64_t address,
                           const char *name, int64_t at, int64_t count);
void writeRow(const Tensor &tensor, uint64_t address, const char *name,
              int64_t at, const std::vector<float> &values);

/// To the nearest number of the type.
float rounded(float value, cudnnDataType_t type);

/// Counts up an index, the last dimension first.
void advance(std::vector<int64_t> &index, const std::vector<int64_t> &shape);

} // namespace gpuemu::cudnn

#endif // PARTITA_TEST_GPUEMULATOR_CUDNN_TENSOR_H
