//===- Conv.cpp - Convolutions as cuDNN computes them ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/rules/Conv.h"

#include <algorithm>

namespace partita::rules {

using abi::DType;
using abi::PostOpKind;

namespace {

class ConvDescriber {
public:
  ConvDescriber(const Convolution &wanted, Conv &conv)
      : wanted(wanted), conv(conv), rank(wanted.x.shape.size()),
        plain(imageOrder(rank, false)), channels_last(imageOrder(rank, true)) {}

  const char *describe() {
    conv.type = wanted.x.type;
    if (conv.type != DType::f32 && conv.type != DType::f16 &&
        conv.type != DType::bf16)
      return "it has no code for their type";
    for (const Tensor *tensor : {&wanted.weights, &wanted.result})
      if (tensor->type != conv.type || tensor->shape.size() != rank)
        return "its operands have different types or ranks";
    if (rank < 3 || rank > 5)
      return "it has not one to three spatial dimensions";
    for (const Tensor *tensor : {&wanted.x, &wanted.weights, &wanted.result})
      if (!isCountable(*tensor))
        return "an operand is empty, or has more elements than 32 bits count";
    if (!std::ranges::equal(wanted.pads_low, wanted.pads_high))
      return "its pads differ at both ends";
    if (!isDense(wanted.x, channels_last) ||
        !isDense(wanted.result, channels_last))
      return "its images do not lie densely with their channels innermost";
    const bool last = isDense(wanted.weights, channels_last);
    if (!last && !isDense(wanted.weights, plain))
      return "its weights do not lie densely";
    conv.x = denseImage(wanted.x.shape, channels_last);
    conv.weights =
        denseImage(wanted.weights.shape, last ? channels_last : plain);
    conv.result = denseImage(wanted.result.shape, channels_last);
    conv.strides = spatial(wanted.strides, 1);
    conv.dilations = spatial(wanted.dilations, 1);
    conv.pads = spatial(wanted.pads_low, 0);
    conv.groups = wanted.groups;
    return describePostOps();
  }

private:
  std::vector<int64_t> spatial(std::span<const int64_t> values,
                               int64_t neutral) const {
    std::vector<int64_t> all(values.begin(), values.end());
    if (rank == 3)
      all.insert(all.begin(), neutral);
    return all;
  }

  const char *describePostOps() {
    constexpr const char *kOrder =
        "its epilogue has a post-op that cuDNN has not, or not in this place";
    for (size_t i = 0; i < wanted.post_ops.size(); ++i) {
      const PostOp &post_op = wanted.post_ops[i];
      const auto number = static_cast<int>(i);
      if (conv.relu)
        return kOrder;
      if (post_op.kind == PostOpKind::relu) {
        conv.relu = true;
        continue;
      }
      if (post_op.kind != PostOpKind::add || !post_op.operand ||
          post_op.operand->type != conv.type ||
          post_op.operand->shape.size() != rank)
        return kOrder;
      if (conv.bias < 0 && isBias(*post_op.operand))
        conv.bias = number;
      else if (conv.addend < 0 && isLikeResult(*post_op.operand))
        conv.addend = number;
      else
        return kOrder;
    }
    return conv.bias < 0 && (conv.addend >= 0 || conv.relu)
               ? "it adds and has ReLU only with a bias"
               : nullptr;
  }

  bool isBias(const Tensor &tensor) const {
    for (size_t dim = 0; dim < rank; ++dim)
      if (dim != 1 && strideOf(tensor, dim) != 0)
        return false;
    return (wanted.result.shape[1] == 1 || strideOf(tensor, 1) == 1) &&
           tensor.offset * floatBytes(tensor.type) % kBiasAlignment == 0;
  }

  bool isLikeResult(const Tensor &tensor) const {
    return std::ranges::equal(tensor.shape, wanted.result.shape) &&
           isDense(tensor, channels_last);
  }

  const Convolution &wanted;
  Conv &conv;
  const size_t rank;
  const std::vector<size_t> plain, channels_last;
};

} // namespace

const char *describeConv(const Convolution &wanted, Conv &conv) {
  conv = {};
  return ConvDescriber(wanted, conv).describe();
}

} // namespace partita::rules
