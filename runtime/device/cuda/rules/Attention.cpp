//===- Attention.cpp - Attention as cuDNN computes it ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/rules/Attention.h"

#include <algorithm>
#include <utility>

namespace partita::rules {

using abi::DType;

namespace {

/// The engines read and write 16 bytes at once.
constexpr int64_t kAccess = 16;

/// Whether the elements of a row lie side by side, and rows begin at multiples
/// of 16 bytes. No two places are one.
bool liesInRows(const Tensor &tensor) {
  const int64_t step = kAccess / floatBytes(tensor.type);
  if (tensor.strides[3] != 1 || tensor.offset % step)
    return false;
  for (size_t dim = 0; dim < 3; ++dim)
    if (tensor.shape[dim] > 1 &&
        (tensor.strides[dim] <= 0 || tensor.strides[dim] % step))
      return false;
  return true;
}

Image imageOf(const Tensor &tensor) {
  Image image;
  image.shape.assign(tensor.shape.begin(), tensor.shape.end());
  image.strides.assign(tensor.strides.begin(), tensor.strides.end());
  // A dimension of one element is never stepped along; the library wants a
  // stride for it all the same.
  int64_t least = 1;
  for (size_t dim = 4; dim-- > 0;) {
    if (image.shape[dim] == 1)
      image.strides[dim] = std::max(image.strides[dim], least);
    least = std::max(least, image.shape[dim] * image.strides[dim]);
  }
  return image;
}

/// A mask lies in rows of its own type, too; along other dimensions than the
/// last it may be the same everywhere.
const char *describeMask(const Tensor &mask, Attention &attention) {
  if (mask.type != attention.type)
    return "its mask is of another type";
  if (!isCountable(mask))
    return "its mask has more elements than 32 bits count";
  if (mask.shape[3] > 1 && mask.strides[3] != 1)
    return "the rows of its mask do not lie side by side";
  Image image = imageOf(mask);
  int64_t least = image.shape[3];
  for (size_t dim = 3; dim-- > 0;) {
    if (strideOf(mask, dim) == 0) {
      image.shape[dim] = 1;
      image.strides[dim] = least;
    } else if (mask.strides[dim] < 0) {
      return "its mask is read backwards";
    }
    least = std::max(least, image.shape[dim] * image.strides[dim]);
  }
  image.strides[3] = 1;
  attention.mask = std::move(image);
  return nullptr;
}

} // namespace

size_t Attention::statisticsBytes() const {
  size_t count = sizeof(float);
  for (const int64_t extent : statistics.shape)
    count *= static_cast<size_t>(extent);
  return count;
}

const char *describeAttention(const Attending &wanted, Attention &attention) {
  attention = {};
  const DType type = attention.type = wanted.q.type;
  if (type != DType::f16 && type != DType::bf16)
    return "it has no engine for their type";
  if (wanted.has_steps)
    return "it has an epilogue";
  if (wanted.mask_mul)
    return "its mask is a factor";
  for (const Tensor *tensor :
       {&wanted.q, &wanted.k, &wanted.v, &wanted.result}) {
    if (tensor->type != type || tensor->shape.size() != 4)
      return "its operands have different types or ranks";
    if (!isCountable(*tensor))
      return "an operand is empty, or has more elements than 32 bits count";
    if (!isHeadSize(tensor->shape[3]))
      return "a head has no multiple of 8 numbers, or more than 512";
    if (!liesInRows(*tensor))
      return "an operand does not lie in rows that begin at multiples of 16 "
             "bytes";
  }
  attention.q = imageOf(wanted.q);
  attention.k = imageOf(wanted.k);
  attention.v = imageOf(wanted.v);
  attention.result = imageOf(wanted.result);
  std::swap(attention.k.shape[2], attention.k.shape[3]);
  std::swap(attention.k.strides[2], attention.k.strides[3]);
  const int64_t batch = wanted.q.shape[0], heads = wanted.q.shape[1],
                rows = wanted.q.shape[2];
  attention.statistics = {{batch, heads, rows, 1}, {heads * rows, rows, 1, 1}};
  if (attention.statisticsBytes() > size_t(kMostStatistics))
    return "its statistics need more than 16 MiB";
  return wanted.mask_add ? describeMask(*wanted.mask_add, attention) : nullptr;
}

} // namespace partita::rules
