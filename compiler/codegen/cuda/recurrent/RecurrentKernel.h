//===- RecurrentKernel.h - Recurrent layers on GPUs -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block computes one sequence in one direction, step by step. Its states lie
// in shared memory. In each step its warps multiply the state with the rows of
// the weights, then its threads apply the gates to the elements.
//
// Until threads are emitted, the kernel's function holds the op itself:
//
//   func @k(%x: tensor<...>, %w: tensor<...>, %out: tensor<...>) -> tensor<...>
//   {
//     %r = nn.recurrent rnn %x, %w ...
//     return %r
//   }
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_RECURRENT_RECURRENTKERNEL_H
#define PARTITA_COMPILER_CODEGEN_CUDA_RECURRENT_RECURRENTKERNEL_H

#include "dialects/nn/NNDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::codegen::cuda {

/// Threads of a block.
inline constexpr int64_t kRecurrentThreads = 256;

/// The layer of a body that has nothing else but constants, or null.
nn::RecurrentOp getRecurrentLayer(mlir::Block &body);

/// Blocks of the kernel's grid.
int64_t countBlocks(nn::RecurrentOp layer);

/// Fails, with a diagnostic, if a layer's states do not fit shared memory, or
/// are not of f32.
mlir::LogicalResult checkRecurrentKernel(nn::ClusterOp cluster);

/// Appends what each thread does to `target`, under the kernel's name.
void emitRecurrent(mlir::func::FuncOp kernel, nn::RecurrentOp layer,
                   mlir::ModuleOp target);

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_RECURRENT_RECURRENTKERNEL_H
