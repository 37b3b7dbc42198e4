//===- Multiply.cpp - A product of matrices on a device -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cublaslt/Multiply.h"

#include "Emulator.h"
#include "ops/Number.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

using namespace gpuemu;
using namespace gpuemu::cublaslt;

size_t gpuemu::cublaslt::bytesOf(cudaDataType_t type) {
  switch (type) {
  case CUDA_R_8I:
    return 1;
  case CUDA_R_16F:
  case CUDA_R_16BF:
    return 2;
  default:
    return 4;
  }
}

namespace {

float floatAt(const uint8_t *data, cudaDataType_t type) {
  uint16_t half;
  float whole;
  switch (type) {
  case CUDA_R_16F:
    memcpy(&half, data, 2);
    return toFloat(Half{half});
  case CUDA_R_16BF:
    memcpy(&half, data, 2);
    return toFloat(BFloat{half});
  default:
    memcpy(&whole, data, 4);
    return whole;
  }
}

void storeFloat(uint8_t *data, cudaDataType_t type, float value) {
  uint16_t half;
  switch (type) {
  case CUDA_R_16F:
    half = roundHalf(value);
    memcpy(data, &half, 2);
    return;
  case CUDA_R_16BF:
    half = roundBFloat(value);
    memcpy(data, &half, 2);
    return;
  default:
    memcpy(data, &value, 4);
  }
}

uint64_t addressOf(const Layout &layout, uint64_t address, int32_t batch,
                   uint64_t column) {
  return address +
         uint64_t(batch * layout.offset + int64_t(column) * layout.step) *
             bytesOf(layout.type);
}

struct Wrong {
  std::string what;
};

/// A column of elements; throws where a kernel would go wrong.
uint8_t *column(const Layout &layout, uint64_t address, int32_t batch,
                uint64_t number, int access, const char *name) {
  void *data = cuEmuBytes(addressOf(layout, address, batch, number),
                          layout.rows * bytesOf(layout.type), access);
  if (!data)
    throw Wrong{std::string("matrix ") + name + ": " + cuEmuLastError()};
  return static_cast<uint8_t *>(data);
}

/// op(matrix) as numbers, [columns][rows] of the result of op.
template <typename T>
std::vector<T> read(const Layout &layout, bool transpose, uint64_t address,
                    int32_t batch, const char *name) {
  std::vector<T> numbers(layout.rows * layout.columns);
  const size_t bytes = bytesOf(layout.type);
  for (uint64_t j = 0; j < layout.columns; ++j) {
    const uint8_t *data = column(layout, address, batch, j, 1, name);
    for (uint64_t i = 0; i < layout.rows; ++i) {
      T &to = numbers[transpose ? i * layout.columns + j : j * layout.rows + i];
      if constexpr (std::is_same_v<T, float>)
        to = floatAt(data + i * bytes, layout.type);
      else
        to = static_cast<int8_t>(data[i]);
    }
  }
  return numbers;
}

/// The one that cuBLASLt has is the approximation by tanh. Its ReLU makes 0 of
/// NaN here, as instructions for the larger of two numbers do.
float applied(uint32_t epilogue, float value) {
  if (epilogue & CUBLASLT_EPILOGUE_RELU)
    return value > 0 ? value : 0;
  if (epilogue & CUBLASLT_EPILOGUE_GELU) {
    const double x = value;
    return float(
        0.5 * x *
        (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))));
  }
  return value;
}

/// sums[m] += a[k][m] * b[k], for all k.
template <typename T>
void accumulate(std::vector<T> &sums, const T *a, const T *b, size_t rows,
                size_t depth) {
  std::fill(sums.begin(), sums.end(), T(0));
  for (size_t k = 0; k < depth; ++k)
    for (size_t m = 0; m < rows; ++m)
      sums[m] += a[k * rows + m] * b[k];
}

template <typename T> void multiplyOne(const Job &job, int32_t batch) {
  const std::vector<T> a =
      read<T>(job.a, job.transposeA, job.addressA, batch, "A");
  const std::vector<T> b =
      read<T>(job.b, job.transposeB, job.addressB, batch, "B");
  const size_t rows = job.d.rows, depth = a.size() / rows,
               bytes = bytesOf(job.d.type);
  std::vector<T> sums(rows);
  std::vector<float> bias(rows);
  if (job.epilogue & CUBLASLT_EPILOGUE_BIAS) {
    Layout vector = job.d;
    vector.columns = 1;
    const uint8_t *data = column(vector, job.bias, 0, 0, 1, "bias");
    for (size_t m = 0; m < rows; ++m)
      bias[m] = floatAt(data + m * bytes, job.d.type);
  }
  for (uint64_t n = 0; n < job.d.columns; ++n) {
    accumulate(sums, a.data(), b.data() + n * depth, rows, depth);
    if constexpr (std::is_same_v<T, float>) {
      const uint8_t *c = job.beta != 0
                             ? column(job.c, job.addressC, batch, n, 1, "C")
                             : nullptr;
      for (size_t m = 0; m < rows; ++m) {
        float value = float(job.alpha) * sums[m];
        if (c)
          value += float(job.beta) * floatAt(c + m * bytes, job.c.type);
        sums[m] = applied(job.epilogue, value + bias[m]);
      }
    }
    // Written last: the addend may lie where the result goes.
    uint8_t *d = column(job.d, job.addressD, batch, n, 2, "D");
    for (size_t m = 0; m < rows; ++m)
      if constexpr (std::is_same_v<T, float>)
        storeFloat(d + m * bytes, job.d.type, sums[m]);
      else
        memcpy(d + m * bytes, &sums[m], bytes);
  }
}

std::pair<uint64_t, uint64_t> rangeOf(const Layout &layout, uint64_t address) {
  return {address,
          addressOf(layout, address, layout.batch - 1, layout.columns - 1) +
              layout.rows * bytesOf(layout.type)};
}

bool overlap(std::pair<uint64_t, uint64_t> a, std::pair<uint64_t, uint64_t> b) {
  return a.first < b.second && b.first < a.second;
}

} // namespace

std::string gpuemu::cublaslt::multiply(const Job &job) {
  const auto result = rangeOf(job.d, job.addressD);
  if (overlap(result, rangeOf(job.a, job.addressA)) ||
      overlap(result, rangeOf(job.b, job.addressB)))
    return "the result of a product overlaps a factor";
  // A real one read a result that it had written itself.
  if (job.epilogue & CUBLASLT_EPILOGUE_BIAS) {
    Layout vector = job.d;
    vector.columns = vector.batch = 1;
    if (overlap(result, rangeOf(vector, job.bias)))
      return "the result of a product overlaps its bias";
  }
  if (job.workspaceBytes) {
    // Whatever else lies there is lost.
    void *scratch = cuEmuBytes(job.workspace, job.workspaceBytes, 2);
    if (!scratch)
      return std::string("the workspace: ") + cuEmuLastError();
    memset(scratch, 0xab, job.workspaceBytes);
  }
  try {
    for (int32_t batch = 0; batch < job.d.batch; ++batch)
      if (job.a.type == CUDA_R_8I)
        multiplyOne<int32_t>(job, batch);
      else
        multiplyOne<float>(job, batch);
  } catch (const Wrong &wrong) {
    return wrong.what;
  }
  return {};
}
