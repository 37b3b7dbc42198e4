//===- Tensor.h - A tensor of the host, owned or mapped ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tensor is dense and row-major, with an element type of the plan. Its bytes
// are owned or belong to a mapped file. Copies of a Tensor share them.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_IO_TENSOR_H
#define PARTITA_RUNTIME_IO_TENSOR_H

#include "runtime/base/Status.h"
#include "runtime/io/DType.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace partita::runtime {

/// The product of the dimensions. Empty if one is negative, or if the product
/// or the number of bytes does not fit in 63 bits.
std::optional<int64_t> elementCount(const std::vector<int64_t> &shape);

/// E.g. "[1, 3, 224, 224]"; "[]" for a scalar.
std::string shapeText(const std::vector<int64_t> &shape);

class Tensor {
public:
  Tensor() = default;

  /// A tensor with its own, uninitialised bytes, on a 64-byte boundary. Fails
  /// if there is not enough memory for `what` of this shape.
  static Expected<Tensor> allocate(abi::DType dtype, std::vector<int64_t> shape,
                                   const std::string &what = "a tensor");

  /// Refers to bytes that `owner` keeps alive. The caller has checked that
  /// `data` has as many bytes as shape and type need.
  static Tensor refer(abi::DType dtype, std::vector<int64_t> shape,
                      const uint8_t *data, std::shared_ptr<const void> owner);

  abi::DType dtype() const { return type; }
  const std::vector<int64_t> &shape() const { return dims; }
  int64_t elements() const { return count; }
  int64_t bytes() const { return count * elementBytes(type); }
  const uint8_t *data() const { return begin; }
  /// Null if the bytes belong to a file.
  uint8_t *mutableData() { return writable; }

  /// E.g. "float32 [1, 10]".
  std::string typeText() const;

private:
  abi::DType type = abi::DType::f32;
  std::vector<int64_t> dims;
  int64_t count = 0;
  const uint8_t *begin = nullptr;
  uint8_t *writable = nullptr;
  std::shared_ptr<const void> storage;
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_IO_TENSOR_H
