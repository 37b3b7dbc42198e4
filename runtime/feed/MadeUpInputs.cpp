//===- MadeUpInputs.cpp - Samples for whoever has none --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/feed/MadeUpInputs.h"

#include "runtime/base/Elements.h"

#include <cstring>

namespace partita::feed {

using runtime::Expected;
using runtime::Status;
using runtime::Tensor;

namespace {

/// A small generator whose n-th number is known without the ones before.
uint64_t scramble(uint64_t value) {
  value += 0x9E3779B97F4A7C15ull;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
  return value ^ (value >> 31);
}

/// A sign, an exponent just below one and any mantissa, in the bits of a small
/// float format.
uint32_t smallFloat(uint64_t random, const runtime::ElementType &type) {
  uint32_t mantissa = uint32_t(random) & ((1u << type.mantissaBits) - 1);
  uint32_t exponent = uint32_t(type.bias - 1 - int((random >> 32) % 3));
  uint32_t sign = uint32_t(random >> 63);
  return sign << (type.exponentBits + type.mantissaBits) |
         exponent << type.mantissaBits | mantissa;
}

void writeRandom(abi::DType dtype, uint64_t random, uint8_t *element) {
  using abi::DType;
  auto put = [&](auto value) { std::memcpy(element, &value, sizeof value); };
  switch (dtype) {
  case DType::f32:
    return put(float(int64_t(random) >> 40) / float(1 << 23));
  case DType::f64:
    return put(double(int64_t(random) >> 11) / double(int64_t(1) << 52));
  case DType::f8e8m0:
    return put(uint8_t(125 + random % 3));
  default:
    break;
  }
  // Floats of 8 and 16 bits, but for those without NaN; of others one bit.
  const runtime::ElementType &type = runtime::elementType(dtype);
  const bool isSmallFloat =
      type.isFloat() && type.specials != runtime::Specials::none;
  const uint64_t bits = isSmallFloat ? smallFloat(random, type) : random >> 63;
  std::memcpy(element, &bits, size_t(type.bytes)); // little-endian
}

} // namespace

Status makeUpMissing(const Model &model, int micro_batches,
                     InputTensors &inputs) {
  // Follow the inputs that are given in how many samples there are.
  int64_t given = micro_batches;
  int64_t perBatch = 1;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Port &port = model.inputs[i];
    if (inputs[i] && port.batchAxis >= 0 &&
        inputs[i]->shape().size() == port.shape.size()) {
      given = inputs[i]->shape()[size_t(port.batchAxis)];
      perBatch = port.samples();
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i])
      continue;
    const Port &port = model.inputs[i];
    std::vector<int64_t> shape = port.shape;
    if (port.batchAxis >= 0)
      shape[size_t(port.batchAxis)] = given * port.samples() / perBatch;
    Tensor tensor = PARTITA_TRY(Tensor::allocate(port.dtype, shape));
    const int64_t size = runtime::elementBytes(port.dtype);
    for (int64_t e = 0; e < tensor.elements(); ++e)
      writeRandom(port.dtype, scramble((uint64_t(i) << 48) + uint64_t(e)),
                  tensor.mutableData() + e * size);
    inputs[i] = tensor;
  }
  return Status();
}

} // namespace partita::feed
