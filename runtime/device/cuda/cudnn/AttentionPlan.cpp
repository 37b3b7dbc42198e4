//===- AttentionPlan.cpp - Attention planned by cuDNN ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operations are those of the formula; the library knows their pattern:
//
//   scores = q . k^T * scale + mask        maximum = max(scores)
//   e = exp(scores - maximum)              sum = sum(e)
//   statistics = maximum + log(sum)        result = (e / sum) . v
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/cudnn/CallPlans.h"

#include <algorithm>

namespace partita::runtime::cuda::cudnn {

using rules::Attention;
using rules::Image;

namespace {

/// The numbers of tensors that are no operands.
constexpr int64_t kScale = 10, kStatistics = 11;

/// Dense, of rank 4.
Image denseImage(int64_t batch, int64_t heads, int64_t rows, int64_t columns) {
  return {{batch, heads, rows, columns},
          {heads * rows * columns, rows * columns, columns, 1}};
}

} // namespace

Descriptor AttentionPlan::inner(abi::DType type, const Image &image) {
  return tensor(type, image, next_id++, 16, /*in_memory=*/false);
}

Descriptor AttentionPlan::matmul(Descriptor a, Descriptor b, Descriptor c) {
  const Descriptor described = create(DescriptorType::matmul);
  set(described, Attribute::matmul_type, AttributeType::data_type,
      std::vector{DataType::f32});
  finalize(described);
  const Descriptor operation = create(DescriptorType::operation_matmul);
  set(operation, Attribute::operation_matmul_a, {a});
  set(operation, Attribute::operation_matmul_b, {b});
  set(operation, Attribute::operation_matmul_c, {c});
  set(operation, Attribute::operation_matmul_descriptor, {described});
  finalize(operation);
  return operation;
}

Descriptor AttentionPlan::reduce(Reduction reduction, Descriptor x,
                                 Descriptor y) {
  const Descriptor described = create(DescriptorType::reduction);
  set(described, Attribute::reduction_type, AttributeType::data_type,
      std::vector{DataType::f32});
  set(described, Attribute::reduction_operator,
      AttributeType::reduction_operator, std::vector{reduction});
  finalize(described);
  const Descriptor operation = create(DescriptorType::operation_reduction);
  set(operation, Attribute::operation_reduction_x, {x});
  set(operation, Attribute::operation_reduction_y, {y});
  set(operation, Attribute::operation_reduction_descriptor, {described});
  finalize(operation);
  return operation;
}

std::vector<Descriptor> AttentionPlan::operations(const Attention &attention,
                                                  const EngineWishes &wishes) {
  auto operand = [&](abi::DType type, const Image &image) {
    const size_t place = operand_ids.size();
    operand_ids.push_back(static_cast<int64_t>(place + 1));
    return tensor(type, image, operand_ids.back(), wishes.alignment);
  };
  const Descriptor q = operand(attention.type, attention.q),
                   k = operand(attention.type, attention.k),
                   v = operand(attention.type, attention.v),
                   result = operand(attention.type, attention.result);
  const int64_t batch = attention.q.shape[0], heads = attention.q.shape[1],
                rows = attention.q.shape[2], keys = attention.k.shape[3];
  const Image all = denseImage(batch, heads, rows, keys),
              row = denseImage(batch, heads, rows, 1);
  auto scores = [&] { return inner(abi::DType::f32, all); };
  auto ofRows = [&] { return inner(abi::DType::f32, row); };
  const Descriptor factor = tensor(abi::DType::f32, denseImage(1, 1, 1, 1),
                                   kScale, sizeof(float), true, &scale);

  Descriptor value = scores();
  std::vector<Descriptor> list = {matmul(q, k, value)};
  auto apply = [&](PointwiseMode mode, Descriptor x, Descriptor b,
                   Descriptor y) {
    list.push_back(pointwise(mode, x, b, y));
    return y;
  };
  value = apply(PointwiseMode::mul, value, factor, scores());
  if (attention.mask)
    value = apply(PointwiseMode::add, value,
                  operand(attention.type, *attention.mask), scores());
  const Descriptor maximum = ofRows();
  list.push_back(reduce(Reduction::max, value, maximum));
  value = apply(PointwiseMode::sub, value, maximum, scores());
  value = apply(PointwiseMode::exp, value, nullptr, scores());
  const Descriptor sum = ofRows();
  list.push_back(reduce(Reduction::add, value, sum));
  const Descriptor logarithm =
      apply(PointwiseMode::log, sum, nullptr, ofRows());
  apply(PointwiseMode::add, maximum, logarithm,
        tensor(abi::DType::f32, attention.statistics, kStatistics, 16));
  const Descriptor weights =
      apply(PointwiseMode::div, value, sum, inner(attention.type, all));
  list.push_back(matmul(weights, v, result));
  return list;
}

Status AttentionPlan::make(const Attention &attention, EngineWishes wishes,
                           const ForDevice &for_device) {
  // The statistics come first, and the engine's workspace begins behind them,
  // where an access of any size may.
  constexpr size_t kStep = 256;
  extra_bytes = (attention.statisticsBytes() + kStep - 1) / kStep * kStep;
  if (extra_bytes > wishes.workspace)
    return Status::error(
        "attention needs " + std::to_string(extra_bytes) +
        " bytes of workspace, and the plan has " +
        std::to_string(wishes.workspace) +
        ": compile the model with more (--workspace), or without "
        "--attention-calls");
  wishes.workspace -= extra_bytes;
  extra_tensors = {{kScale, &scale, 0}, {kStatistics, nullptr, 0}};
  // Tensor cores multiply what has 16 bits exactly.
  auto suits = [&](Descriptor config) {
    return std::ranges::all_of(notesOf(config), [](NumericalNote each) {
      return each == NumericalNote::tensor_core ||
             each == NumericalNote::strict_nan_prop;
    });
  };
  return choose(operations(attention, wishes), wishes, for_device, suits,
                "attention", "rounds no part of a sum, compiled by NVRTC",
                "install NVRTC (libnvrtc.so of the same CUDA as cuDNN) where "
                "the dynamic loader finds it, or compile the model without "
                "--attention-calls");
}

} // namespace partita::runtime::cuda::cudnn
