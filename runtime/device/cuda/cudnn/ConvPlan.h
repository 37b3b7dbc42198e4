//===- ConvPlan.h - A convolution planned by cuDNN --------------*- C++ -*-===//
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

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_CONVPLAN_H
#define PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_CONVPLAN_H

#include "runtime/device/cuda/cudnn/EnginePlan.h"
#include "runtime/device/cuda/rules/Conv.h"

namespace partita::runtime::cuda::cudnn {

/// The operands: x, weights, result, then the addend and the bias, if there
/// are.
class ConvPlan final : public EnginePlan {
public:
  explicit ConvPlan(const Api &api) : EnginePlan(api) {}

  /// Chooses an engine and finalises its plan. Alignments are those of x,
  /// weights, result, addend and bias.
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

} // namespace partita::runtime::cuda::cudnn

#endif // PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_CONVPLAN_H
