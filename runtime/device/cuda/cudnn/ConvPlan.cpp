//===- ConvPlan.cpp - A convolution planned by cuDNN ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operations: the convolution, then the addend, the bias and ReLU, as far
// as there are.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/cudnn/CallPlans.h"

#include <algorithm>

namespace partita::runtime::cuda::cudnn {

using rules::Conv;
using rules::Image;

namespace {

/// One value a channel, broadcast along everything else.
Image biasOf(const Image &result) {
  Image bias = result;
  const int64_t channels = result.shape[1];
  std::fill(bias.shape.begin(), bias.shape.end(), 1);
  std::fill(bias.strides.begin(), bias.strides.end(), channels);
  bias.shape[1] = channels;
  bias.strides[1] = 1;
  return bias;
}

} // namespace

Descriptor ConvPlan::operand(const Conv &conv, const Image &image, TensorId id,
                             const EngineWishes &wishes) {
  const auto number = static_cast<int64_t>(id);
  operand_ids.push_back(number);
  return tensor(conv.type, image, number, wishes.alignment);
}

std::vector<Descriptor> ConvPlan::operations(const Conv &conv,
                                             const EngineWishes &wishes) {
  const Descriptor x = operand(conv, conv.x, TensorId::x, wishes),
                   w = operand(conv, conv.weights, TensorId::weights, wishes),
                   result =
                       operand(conv, conv.result, TensorId::result, wishes);
  const Descriptor described = create(DescriptorType::convolution);
  set(described, Attribute::convolution_type, AttributeType::data_type,
      std::vector{DataType::f32});
  set(described, Attribute::convolution_mode, AttributeType::convolution_mode,
      std::vector{ConvolutionMode::cross_correlation});
  set(described, Attribute::convolution_spatial_dims, AttributeType::int64,
      std::vector{static_cast<int64_t>(conv.strides.size())});
  for (auto [name, values] :
       {std::pair(Attribute::convolution_dilations, &conv.dilations),
        std::pair(Attribute::convolution_strides, &conv.strides),
        std::pair(Attribute::convolution_pre_paddings, &conv.pads),
        std::pair(Attribute::convolution_post_paddings, &conv.pads)})
    set(described, name, AttributeType::int64, *values);
  finalize(described);

  // Each step but the last writes a tensor that is in no memory.
  int steps = (conv.addend >= 0) + (conv.bias >= 0) + conv.relu;
  int64_t next_id = 100;
  auto target = [&] {
    return steps-- == 0 ? result
                        : tensor(abi::DType::f32, conv.result, next_id++, 16,
                                 /*in_memory=*/false);
  };
  Descriptor value = target();
  std::vector<Descriptor> all = {create(DescriptorType::operation_convolution)};
  const Descriptor first = all.front();
  set(first, Attribute::operation_convolution_descriptor, {described});
  set(first, Attribute::operation_convolution_x, {x});
  set(first, Attribute::operation_convolution_w, {w});
  set(first, Attribute::operation_convolution_y, {value});
  set(first, Attribute::operation_convolution_alpha, AttributeType::f32,
      std::vector{1.0f});
  set(first, Attribute::operation_convolution_beta, AttributeType::f32,
      std::vector{0.0f});
  finalize(first);
  auto add = [&](PointwiseMode mode, Descriptor other) {
    const Descriptor to = target();
    all.push_back(pointwise(mode, value, other, to));
    value = to;
  };
  if (conv.addend >= 0)
    add(PointwiseMode::add,
        operand(conv, conv.result, TensorId::addend, wishes));
  if (conv.bias >= 0)
    add(PointwiseMode::add,
        operand(conv, biasOf(conv.result), TensorId::bias, wishes));
  if (conv.relu)
    add(PointwiseMode::relu, nullptr);
  return all;
}

/// f32 is multiplied in f32, on no tensor core. No engine transforms tiles or
/// gives other bits in another run.
bool ConvPlan::isExact(Descriptor config, const Conv &conv,
                       const EngineWishes &wishes) {
  bool keeps_nan = !(wishes.keep_nan && conv.relu);
  for (const NumericalNote each : notesOf(config)) {
    if (each == NumericalNote::strict_nan_prop)
      keeps_nan = true;
    else if (each != NumericalNote::tensor_core || conv.type == abi::DType::f32)
      return false;
  }
  return keeps_nan;
}

Status ConvPlan::make(const Conv &conv, const EngineWishes &wishes,
                      const ForDevice &for_device) {
  return choose(
      operations(conv, wishes), wishes, for_device,
      [&](Descriptor config) { return isExact(config, conv, wishes); },
      "a convolution",
      std::string("computes ") +
          (conv.type == abi::DType::f32 ? "in f32 alone"
                                        : "without transforming tiles") +
          (wishes.keep_nan && conv.relu ? ", keeps NaN" : ""));
}

} // namespace partita::runtime::cuda::cudnn
