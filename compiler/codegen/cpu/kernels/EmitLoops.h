//===- EmitLoops.h - Kernels as loops and vectors ---------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns a kernel's function on tensors into one on flat buffers:
//
//   func @k(%in0: memref<Nxf32>, ..., %out0: memref<Nxf32>, %begin, %end)
//
// All buffers are dense and row-major, so a view is its source with other
// strides. The parallel loop runs from begin to end. Inside it each stage is a
// nest of loops, one of which runs over vectors if the stage's ops allow it.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CPU_KERNELS_EMITLOOPS_H
#define PARTITA_COMPILER_CODEGEN_CPU_KERNELS_EMITLOOPS_H

#include "compiler/codegen/kernels/KernelBuffer.h"
#include "compiler/codegen/kernels/KernelSchedule.h"

#include "mlir/IR/BuiltinOps.h"

namespace partita::codegen {

/// Appends the kernel to `target` under the same name.
void emitLoops(mlir::func::FuncOp kernel, const KernelSchedule &schedule,
               mlir::ModuleOp target);

/// Emits the loops of one stage.
void emitStage(mlir::OpBuilder &b, EmitContext &context,
               const StageSchedule &stage);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_CPU_KERNELS_EMITLOOPS_H
