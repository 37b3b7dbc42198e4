//===- PoolPlan.cpp - Pooling planned by cuDNN ----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/cudnn/CallPlans.h"

#include <algorithm>

namespace partita::runtime::cuda::cudnn {

using rules::Pool;
using rules::PoolMode;

/// The windows, and what is done with their elements.
Descriptor PoolPlan::resample(const Pool &pool) {
  const bool max = pool.mode == PoolMode::max;
  const Descriptor described = create(DescriptorType::resample);
  set(described, Attribute::resample_mode, AttributeType::resample_mode,
      std::vector{max ? ResampleMode::max
                  : pool.mode == PoolMode::average
                      ? ResampleMode::average
                      : ResampleMode::average_with_pads});
  set(described, Attribute::resample_type, AttributeType::data_type,
      std::vector{DataType::f32});
  set(described, Attribute::resample_nan_propagation,
      AttributeType::nan_propagation, std::vector{NanPropagation::propagate});
  set(described, Attribute::resample_padding_mode, AttributeType::padding_mode,
      std::vector{max ? PaddingMode::negative_infinity : PaddingMode::zero});
  set(described, Attribute::resample_spatial_dims, AttributeType::int64,
      std::vector{static_cast<int64_t>(pool.window.size())});
  for (auto [name, values] :
       {std::pair(Attribute::resample_window, &pool.window),
        std::pair(Attribute::resample_strides, &pool.strides),
        std::pair(Attribute::resample_pre_paddings, &pool.pads),
        std::pair(Attribute::resample_post_paddings, &pool.pads)})
    set(described, name, AttributeType::int64, *values);
  finalize(described);
  return described;
}

Status PoolPlan::make(const Pool &pool, const EngineWishes &wishes,
                      const ForDevice &for_device) {
  operand_ids = {1, 2};
  const Descriptor described = resample(pool),
                   x = tensor(pool.type, pool.x, 1, wishes.alignment),
                   y = tensor(pool.type, pool.result, 2, wishes.alignment);
  const Descriptor operation = create(DescriptorType::operation_resample);
  set(operation, Attribute::operation_resample_x, {x});
  set(operation, Attribute::operation_resample_y, {y});
  set(operation, Attribute::operation_resample_descriptor, {described});
  finalize(operation);
  // An engine may say of itself that it keeps NaN, and nothing else.
  auto suits = [&](Descriptor config) {
    return std::ranges::all_of(notesOf(config), [](NumericalNote each) {
      return each == NumericalNote::strict_nan_prop;
    });
  };
  return choose({operation}, wishes, for_device, suits, "a pool",
                "computes in f32 alone");
}

} // namespace partita::runtime::cuda::cudnn
