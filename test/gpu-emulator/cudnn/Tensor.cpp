//===- Tensor.cpp - A tensor on a device ----------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cudnn/Tensor.h"

#include "Emulator.h"
#include "ops/Number.h"

#include <algorithm>
#include <cstring>

using namespace gpuemu;
using namespace gpuemu::cudnn;

int64_t Tensor::count() const {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

size_t Tensor::bytes() const { return size_t(count()) * elementBytes(); }

size_t Tensor::elementBytes() const { return type == CUDNN_DATA_FLOAT ? 4 : 2; }

/// Strides with their extents, the smallest first.
static std::vector<std::pair<int64_t, int64_t>> stepsOf(const Tensor &tensor) {
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    if (tensor.shape[i] != 1)
      dims.emplace_back(tensor.strides[i], tensor.shape[i]);
  std::sort(dims.begin(), dims.end());
  return dims;
}

bool Tensor::isPacked() const {
  int64_t step = 1;
  for (auto [stride, extent] : stepsOf(*this)) {
    if (stride != step)
      return false;
    step *= extent;
  }
  return true;
}

bool Tensor::isPlain() const {
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != step)
      return false;
    step *= shape[i];
  }
  return true;
}

bool Tensor::isDisjoint() const {
  int64_t reach = 0;
  for (auto [stride, extent] : stepsOf(*this)) {
    if (stride <= reach)
      return false;
    reach += (extent - 1) * stride;
  }
  return true;
}

static uint8_t *bytesOf(const Tensor &tensor, uint64_t address,
                        const char *name, int64_t at, size_t count,
                        int access) {
  const size_t bytes = tensor.elementBytes();
  void *data =
      cuEmuBytes(address + uint64_t(at) * bytes, count * bytes, access);
  if (!data)
    throw Wrong{std::string("tensor ") + name + ": " + cuEmuLastError()};
  return static_cast<uint8_t *>(data);
}

std::vector<float> gpuemu::cudnn::readRow(const Tensor &tensor,
                                          uint64_t address, const char *name,
                                          int64_t at, int64_t count) {
  const uint8_t *data = bytesOf(tensor, address, name, at, size_t(count), 1);
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t half;
    if (tensor.type == CUDNN_DATA_FLOAT) {
      memcpy(&values[i], data + 4 * i, 4);
      continue;
    }
    memcpy(&half, data + 2 * i, 2);
    values[i] = tensor.type == CUDNN_DATA_HALF ? toFloat(Half{half})
                                               : toFloat(BFloat{half});
  }
  return values;
}

void gpuemu::cudnn::writeRow(const Tensor &tensor, uint64_t address,
                             const char *name, int64_t at,
                             const std::vector<float> &values) {
  uint8_t *data = bytesOf(tensor, address, name, at, values.size(), 2);
  for (size_t i = 0; i < values.size(); ++i) {
    if (tensor.type == CUDNN_DATA_FLOAT) {
      memcpy(data + 4 * i, &values[i], 4);
      continue;
    }
    uint16_t half = tensor.type == CUDNN_DATA_HALF ? roundHalf(values[i])
                                                   : roundBFloat(values[i]);
    memcpy(data + 2 * i, &half, 2);
  }
}

std::vector<float> gpuemu::cudnn::read(const Tensor &tensor, uint64_t address,
                                       const char *name) {
  return readRow(tensor, address, name, 0, tensor.count());
}

void gpuemu::cudnn::write(const Tensor &tensor, uint64_t address,
                          const char *name, const std::vector<float> &values) {
  writeRow(tensor, address, name, 0, values);
}

float gpuemu::cudnn::rounded(float value, cudnnDataType_t type) {
  return type == CUDNN_DATA_HALF       ? toFloat(toHalf(value))
         : type == CUDNN_DATA_BFLOAT16 ? toFloat(toBFloat(value))
                                       : value;
}

void gpuemu::cudnn::advance(std::vector<int64_t> &index,
                            const std::vector<int64_t> &shape) {
  for (size_t i = index.size(); i-- > 0;) {
    if (++index[i] < shape[i])
      break;
    index[i] = 0;
  }
}
