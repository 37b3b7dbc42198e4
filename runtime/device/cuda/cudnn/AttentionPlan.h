//===- AttentionPlan.h - Attention planned by cuDNN -------------*- C++ -*-===//
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

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_ATTENTIONPLAN_H
#define PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_ATTENTIONPLAN_H

#include "runtime/device/cuda/cudnn/EnginePlan.h"
#include "runtime/device/cuda/rules/Attention.h"

namespace partita::runtime::cuda::cudnn {

/// The operands: q, k, v, result, and the mask, if there is one. The scale is a
/// number of the host, the statistics lie in the workspace.
class AttentionPlan final : public EnginePlan {
public:
  AttentionPlan(const Api &api, float scale) : EnginePlan(api), scale(scale) {}

  /// Chooses an engine and finalises its plan. Alignments are those of the
  /// operands.
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

#endif // PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_ATTENTIONPLAN_H
