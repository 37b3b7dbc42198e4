//===- RowThreads.h - Threads that compute a row together -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_GRID_ROWTHREADS_H
#define PARTITA_COMPILER_CODEGEN_CUDA_GRID_ROWTHREADS_H

#include "compiler/codegen/cuda/grid/GridSchedule.h"
#include "compiler/codegen/cuda/grid/NumberBuilder.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::codegen::cuda {

/// LLVM's numbers of the address spaces.
inline constexpr int64_t kGlobalSpace = 1, kSharedSpace = 3;

/// Builds with the builder that is given beside it.
using CombineFn = llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)>;

/// The value of another thread of the warp: the one whose number differs in one
/// bit (`bfly`), or is lower by `distance` (`up`).
mlir::Value shuffle(NumberBuilder &b, mlir::Value value,
                    mlir::NVVM::ShflKind kind, int distance);

/// Combines a value of each thread of a warp. All threads get the same bits.
mlir::Value reduceWarp(NumberBuilder &b, mlir::Value value, CombineFn combine);

/// Declares shared memory of a block in `target`, and gets it. There are no
/// bytes behind it that LLVM might read along.
mlir::Value declareShared(NumberBuilder &b, mlir::ModuleOp target,
                          llvm::StringRef name, int64_t elements,
                          mlir::Type element);

/// The threads that compute a row, and what they do together. They are a warp,
/// the whole block, or those of a block that are as far apart as it has
/// columns. All threads of a warp or block must come to the same calls.
class RowThreads {
public:
  /// Shared memory is declared in `target`.
  RowThreads(mlir::ModuleOp target, mlir::StringRef kernel,
             const GridSchedule &schedule)
      : target(target), kernel(kernel), schedule(schedule) {}

  int64_t size() const { return schedule.rowThreads; }
  /// Finds the row of this thread in the block of this number, and the thread's
  /// place among those of the row.
  void begin(NumberBuilder &b, mlir::Value block);

  mlir::Value row;    ///< of the grid, i32
  mlir::Value lane;   ///< index
  mlir::Value stores; ///< i1: whether the thread stores the row's results

  /// Memory of `shape` for each row of the block. The buffer's base is that of
  /// this thread's row.
  KernelBuffer allocate(NumberBuilder &b, llvm::ArrayRef<int64_t> shape,
                        mlir::Type element);

  /// What was written before it is seen by the row's threads behind it.
  void barrier(NumberBuilder &b);

  /// Combines a value of each thread. All threads get the same bits, which
  /// depend on nothing but the values.
  mlir::Value reduce(NumberBuilder &b, mlir::Value value, CombineFn combine);

private:
  void beginColumns(NumberBuilder &b);
  mlir::Value reduceColumns(NumberBuilder &b, mlir::Value value,
                            CombineFn combine);

  mlir::ModuleOp target;
  std::string kernel;
  const GridSchedule &schedule;
  mlir::Value thread; ///< in the block, i32
  int buffers = 0;
};

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_GRID_ROWTHREADS_H
