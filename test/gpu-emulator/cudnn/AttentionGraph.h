//===- AttentionGraph.h - Attention as a graph ------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pattern that cuDNN 9.19 has engines for, [what only some have]:
//
//   product of q and k, MUL by the scale, [ADD of the mask], maximum of each
//   row, SUB, EXP, sum of each row, LOG, ADD (the statistics), DIV, product
//   with v
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_CUDNN_ATTENTIONGRAPH_H
#define PARTITA_TEST_GPUEMULATOR_CUDNN_ATTENTIONGRAPH_H

#include "cudnn/Descriptor.h"

namespace gpuemu::cudnn {

/// Finalises a product, a pointwise step or a reduction: nothing is missing,
/// and the shapes fit each other.
cudnnStatus_t finalizeStep(const Descriptor &operation);

/// Finalises a graph that begins with a product. There are proposals for
/// attention alone, and none without the runtime compiler (CUDNN_EMU_NO_NVRTC).
cudnnStatus_t
finalizeAttentionGraph(Descriptor &self,
                       const std::vector<const Descriptor *> &operations);

} // namespace gpuemu::cudnn

#endif // PARTITA_TEST_GPUEMULATOR_CUDNN_ATTENTIONGRAPH_H
