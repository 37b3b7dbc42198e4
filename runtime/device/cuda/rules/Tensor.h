//===- Tensor.h - What library calls of GPUs read and write -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_RULES_TENSOR_H
#define PARTITA_RUNTIME_DEVICE_CUDA_RULES_TENSOR_H

#include "runtime/abi/plan_generated.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace partita::rules {

/// The bytes of workspace that a plan with calls has on each GPU: NVIDIA's
/// advice for Hopper. No algorithm that needs more is chosen.
inline constexpr int64_t kGpuWorkspace = int64_t(32) << 20;

/// Of each weight on a GPU: what cuMemAlloc gives.
inline constexpr int64_t kGpuWeightAlignment = 256;

/// A strided tensor. `strides` and `offset` are in elements; a stride of 0
/// repeats an element.
struct Tensor {
  abi::DType type = abi::DType::f32;
  std::span<const int64_t> shape, strides;
  int64_t offset = 0; ///< from the start of a slot
};

/// A post-op of the epilogue.
struct PostOp {
  abi::PostOpKind kind = abi::PostOpKind::relu;
  double alpha = 0, beta = 0;
  std::optional<Tensor> operand; ///< of a binary one
  bool is_result = false; ///< the operand lies where the result comes to lie
};

/// The stride of a dimension; 0 where the operand is broadcast.
inline int64_t strideOf(const Tensor &tensor, size_t dim) {
  return tensor.shape[dim] == 1 ? 0 : tensor.strides[dim];
}

/// Whether the tensor is dense with its dimensions in this order.
inline bool isDense(const Tensor &tensor, std::span<const size_t> order) {
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const int64_t extent = tensor.shape[order[i]];
    if (extent != 1 && tensor.strides[order[i]] != step)
      return false;
    step *= extent;
  }
  return true;
}

/// Whether it has elements, and 32 bits can count them.
inline bool isCountable(const Tensor &tensor) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  int64_t count = 1;
  for (const int64_t extent : tensor.shape)
    if (extent < 1 || extent > kMost || (count *= extent) > kMost)
      return false;
  return true;
}

/// The order of an image's dimensions in memory, of [N, C, spatial..].
inline std::vector<size_t> imageOrder(size_t rank, bool channels_last) {
  std::vector<size_t> order;
  for (size_t dim = 0; dim < rank; ++dim)
    if (dim != 1 || !channels_last)
      order.push_back(dim);
  if (channels_last)
    order.push_back(1);
  return order;
}

/// Dimensions and strides as cuDNN has them: with at least two spatial
/// dimensions.
struct Image {
  std::vector<int64_t> shape, strides;
};

/// The image of a dense tensor with its dimensions in this order in memory. One
/// spatial dimension is a row of two. Extents of 1 have strides, too.
inline Image denseImage(std::span<const int64_t> shape,
                        std::span<const size_t> order) {
  Image image;
  image.shape.assign(shape.begin(), shape.end());
  image.strides.resize(shape.size());
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    image.strides[order[i]] = step;
    step *= shape[order[i]];
  }
  if (shape.size() == 3) {
    image.shape.insert(image.shape.begin() + 2, 1);
    image.strides.insert(image.strides.begin() + 2,
                         image.strides[2] * shape[2]);
  }
  return image;
}

/// The bytes of an element of a float.
inline int64_t floatBytes(abi::DType type) {
  return type == abi::DType::f32 ? 4 : 2;
}

/// A bias is read by accesses of so many bytes.
inline constexpr int64_t kBiasAlignment = 16;

} // namespace partita::rules

#endif // PARTITA_RUNTIME_DEVICE_CUDA_RULES_TENSOR_H
