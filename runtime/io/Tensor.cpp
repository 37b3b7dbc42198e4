//===- Tensor.cpp - A tensor of the host, owned or mapped -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Tensor.h"

#include "runtime/base/Arena.h"

#include <limits>
#include <new>

namespace partita::runtime {
namespace {

/// Bytes from which on a tensor has pages of its own, large ones where the
/// system has them.
constexpr int64_t kLarge = 2 << 20;
constexpr std::align_val_t kAlignment{64};

} // namespace

std::optional<int64_t> elementCount(const std::vector<int64_t> &shape) {
  // Room for eight bytes an element, so that sizes in bytes fit too.
  const int64_t limit = std::numeric_limits<int64_t>::max() / 8;
  int64_t count = 1;
  bool empty = false;
  for (int64_t dim : shape) {
    if (dim < 0)
      return std::nullopt;
    if (dim == 0) {
      empty = true;
      continue;
    }
    if (count > limit / dim)
      return std::nullopt;
    count *= dim;
  }
  return empty ? 0 : count;
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

Expected<Tensor> Tensor::allocate(abi::DType dtype, std::vector<int64_t> shape,
                                  const std::string &what) {
  auto described = [&] { return what + " of shape " + shapeText(shape); };
  std::optional<int64_t> count = elementCount(shape);
  if (!count)
    return Status::error(described() + " is too large");
  int64_t bytes = *count * elementBytes(dtype);
  uint8_t *data = nullptr;
  std::shared_ptr<const void> owner;
  if (bytes >= kLarge) {
    auto mapped = std::make_shared<Arena>(
        PARTITA_TRY(Arena::map(size_t(bytes), described().c_str())));
    data = mapped->data();
    owner = std::move(mapped);
  } else {
    data = new (kAlignment, std::nothrow) uint8_t[bytes ? bytes : 1];
    if (!data)
      return Status::error("not enough memory for " + described() + " (" +
                           std::to_string(bytes) + " bytes)");
    owner.reset(data,
                [](void *memory) { operator delete[](memory, kAlignment); });
  }
  Tensor tensor = refer(dtype, std::move(shape), data, std::move(owner));
  tensor.writable = data;
  return tensor;
}

Tensor Tensor::refer(abi::DType dtype, std::vector<int64_t> shape,
                     const uint8_t *data, std::shared_ptr<const void> owner) {
  Tensor tensor;
  tensor.type = dtype;
  tensor.count = elementCount(shape).value_or(0);
  tensor.dims = std::move(shape);
  tensor.begin = data;
  tensor.storage = std::move(owner);
  return tensor;
}

std::string Tensor::typeText() const {
  return std::string(dtypeName(type)) + " " + shapeText(dims);
}

} // namespace partita::runtime
