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

size_t Tensor::bytes() const {
  return size_t(count()) * (type == CUDNN_DATA_FLOAT ? 4 : 2);
}

bool Tensor::isPacked() const {
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1)
      dims.emplace_back(strides[i], shape[i]);
  std::sort(dims.begin(), dims.end());
  int64_t step = 1;
  for (auto [stride, extent] : dims) {
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

static uint8_t *bytesOf(const Tensor &tensor, uint64_t address, int access,
                        const char *name) {
  void *data = cuEmuBytes(address, tensor.bytes(), access);
  if (!data)
    throw Wrong{std::string("tensor ") + name + ": " + cuEmuLastError()};
  return static_cast<uint8_t *>(data);
}

std::vector<float> gpuemu::cudnn::read(const Tensor &tensor, uint64_t address,
                                       const char *name) {
  const uint8_t *data = bytesOf(tensor, address, 1, name);
  std::vector<float> values(size_t(tensor.count()));
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

void gpuemu::cudnn::write(const Tensor &tensor, uint64_t address,
                          const char *name, const std::vector<float> &values) {
  uint8_t *data = bytesOf(tensor, address, 2, name);
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

void gpuemu::cudnn::advance(std::vector<int64_t> &index,
                            const std::vector<int64_t> &shape) {
  for (size_t i = index.size(); i-- > 0;) {
    if (++index[i] < shape[i])
      break;
    index[i] = 0;
  }
}
