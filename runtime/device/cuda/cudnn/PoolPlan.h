//===- PoolPlan.h - Pooling planned by cuDNN --------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_POOLPLAN_H
#define PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_POOLPLAN_H

#include "runtime/device/cuda/cudnn/EnginePlan.h"
#include "runtime/device/cuda/rules/Pool.h"

namespace partita::runtime::cuda::cudnn {

/// The operands: x and the result. NaN is always asked for where an element of
/// a window is NaN.
class PoolPlan final : public EnginePlan {
public:
  explicit PoolPlan(const Api &api) : EnginePlan(api) {}

  /// Chooses an engine and finalises its plan. Alignments are those of x and
  /// the result.
  Status make(const rules::Pool &pool, const EngineWishes &wishes,
              const ForDevice &for_device);

private:
  Descriptor resample(const rules::Pool &pool);
};

} // namespace partita::runtime::cuda::cudnn

#endif // PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_POOLPLAN_H
