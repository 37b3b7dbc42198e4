//===- CallPlans.h - Calls planned by cuDNN ---------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_CALLPLANS_H
#define PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_CALLPLANS_H

#include "runtime/device/cuda/cudnn/EnginePlan.h"
#include "runtime/device/cuda/rules/Attention.h"
#include "runtime/device/cuda/rules/Conv.h"
#include "runtime/device/cuda/rules/Pool.h"

namespace partita::runtime::cuda::cudnn {

// `make` chooses an engine and finalises its plan. Alignments are those of the
// operands.

/// The operands: x, weights, result, then the addend and the bias, if there
/// are.
class ConvPlan final : public EnginePlan {
public:
  explicit ConvPlan(const Api &api) : EnginePlan(api) {}

  Status make(const rules::Conv &conv, const EngineWishes &wishes,
              const ForDevice &for_device);

private:
  /// The numbers of tensors.
  enum class TensorId : int64_t { x = 1, weights, result, addend, bias };

  Descriptor operand(const rules::Conv &conv, const rules::Image &image,
                     TensorId id, const EngineWishes &wishes);
  std::vector<Descriptor> operations(const rules::Conv &conv,
                                     const EngineWishes &wishes);
  bool isExact(Descriptor config, const rules::Conv &conv,
               const EngineWishes &wishes);
};

/// The operands: x and the result. NaN is always asked for where an element of
/// a window is NaN.
class PoolPlan final : public EnginePlan {
public:
  explicit PoolPlan(const Api &api) : EnginePlan(api) {}

  Status make(const rules::Pool &pool, const EngineWishes &wishes,
              const ForDevice &for_device);

private:
  Descriptor resample(const rules::Pool &pool);
};

/// The operands: q, k, v, result, and the mask, if there is one. The scale is a
/// number of the host, the statistics lie in the workspace.
class AttentionPlan final : public EnginePlan {
public:
  AttentionPlan(const Api &api, float scale) : EnginePlan(api), scale(scale) {}

  Status make(const rules::Attention &attention, EngineWishes wishes,
              const ForDevice &for_device);

private:
  std::vector<Descriptor> operations(const rules::Attention &attention,
                                     const EngineWishes &wishes);
  /// What is in no memory.
  Descriptor inner(abi::DType type, const rules::Image &image);
  Descriptor matmul(Descriptor a, Descriptor b, Descriptor c);
  Descriptor reduce(Reduction reduction, Descriptor x, Descriptor y);

  const float scale; ///< the library reads it where it is
  int64_t next_id = 100;
};

} // namespace partita::runtime::cuda::cudnn

#endif // PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_CALLPLANS_H
