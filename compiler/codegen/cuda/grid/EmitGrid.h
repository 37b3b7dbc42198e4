//===- EmitGrid.h - Kernels as blocks of threads ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns a kernel's function on tensors into what each thread of a grid does, on
// flat buffers in global memory:
//
//   func @k(%in0: memref<Nxf32, 1>, ..., %out0: memref<Nxf32, 1>)
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_GRID_EMITGRID_H
#define PARTITA_COMPILER_CODEGEN_CUDA_GRID_EMITGRID_H

#include "compiler/codegen/cuda/grid/RowThreads.h"

namespace partita::codegen::cuda {

/// Appends the kernel to `target` under the same name.
void emitGrid(mlir::func::FuncOp kernel, const GridSchedule &schedule,
              mlir::ModuleOp target);

/// Appends a kernel with an empty body to `target`: the arguments of `kernel`,
/// on flat buffers. `inPlace`: pairs (operand, result) that may overlap.
mlir::func::FuncOp declareKernel(mlir::func::FuncOp kernel,
                                 llvm::ArrayRef<int64_t> inPlace,
                                 mlir::ModuleOp target);

/// Emits what a thread of the kernel does on these buffers, in front of the
/// place of `b`. `name` begins the names of its tables and shared memory;
/// `block` is the number of the thread's block (i32).
void emitThread(const mlir::OpBuilder &b, mlir::func::FuncOp kernel,
                const GridSchedule &schedule, mlir::ModuleOp target,
                llvm::StringRef name, mlir::ValueRange memrefs,
                mlir::Value block);

/// Says of all vectors that they lie at multiples of their size, but for those
/// in `unaligned` buffers.
void alignVectors(mlir::func::FuncOp func,
                  const llvm::SmallDenseSet<mlir::Value> &unaligned);

/// State that the stages of a kernel share while it is emitted.
struct GridContext {
  GridContext(const GridSchedule &schedule, mlir::ModuleOp target,
              llvm::StringRef kernel)
      : schedule(schedule), buffers(schedule.kernel),
        rowThreads(target, kernel, schedule) {}

  const GridSchedule &schedule;
  EmitContext buffers;
  RowThreads rowThreads;
  /// By stage: the one element of its row, which every thread of the row has,
  /// or the elements of the thread's rows.
  llvm::DenseMap<mlir::Operation *, mlir::Value> elements;
  /// Of operands of a tile: the element of the thread's row.
  llvm::DenseMap<mlir::OpOperand *, mlir::Value> staged;
};

/// Emits one stage.
void emitStage(mlir::OpBuilder &b, GridContext &context,
               const StageSchedule &stage);

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_GRID_EMITGRID_H
