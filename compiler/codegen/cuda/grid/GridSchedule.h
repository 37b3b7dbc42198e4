//===- GridSchedule.h - Which thread computes what --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rows of a kernel (KernelSchedule.h) are dealt out to threads in one of
// four ways:
//
//   points   each thread computes a few rows that follow one another. A row has
//            one element in every stage, so that no thread needs another's.
//   tiles    the same, for kernels that transpose: a block computes the rows of
//            a tile, so that it loads and stores whole lines (Tile.h)
//   rows     a warp, or a whole block, computes a row: its threads share the
//            loops of each stage, one after the other.
//   columns  a block computes a few neighbouring rows, each by several
//            threads. The threads of these rows alternate, so that neighbours
//            read along the rows.
//
//   relu of 1000000          points: 250000 threads of 4 elements
//   column sums of 64x50000  points: a thread a column
//   column sums of 512x4096  128 blocks, each with 32 columns, 8 threads a
//   column transpose of 512x4096    2048 blocks, each with a tile of 32x32
//   softmax of 8x16x100      128 warps, each with a row of 100
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_GRID_GRIDSCHEDULE_H
#define PARTITA_COMPILER_CODEGEN_CUDA_GRID_GRIDSCHEDULE_H

#include "compiler/codegen/kernels/KernelBuffer.h"

namespace partita::codegen::cuda {

inline constexpr int64_t kWarp = 32;
/// Bytes of a vector access.
inline constexpr int64_t kVectorBytes = 16;
/// Most bytes that a block declares in shared memory, on every GPU.
inline constexpr int64_t kMostSharedBytes = 48 * 1024;

struct GridSchedule {
  KernelSchedule kernel;  ///< its tiles are single rows
  int64_t threads = 256;  ///< of a block
  int64_t rowThreads = 1; ///< threads that share a row; 1: points
  int64_t width = 1;      ///< of points: the rows of a thread
  int64_t columns = 1;    ///< rows of a block whose threads alternate
  /// Rows of a block's tile along each row dimension; empty: no tiles.
  llvm::SmallVector<int64_t> tile;

  int64_t getBlocks() const;
};

/// Decides the schedule of a function made by `buildKernel`.
GridSchedule scheduleGrid(mlir::func::FuncOp func);

/// The bytes of shared memory that a block needs for temporaries.
int64_t getSharedBytes(const GridSchedule &schedule);

/// The attribute of a kernel that says how rows are dealt out.
///
///   nn.grid = {threads = 256, row_threads = 1, width = 4}
///   nn.grid = {threads = 256, row_threads = 1, width = 1, tile = [1, 32, 32]}
///   nn.grid = {threads = 256, row_threads = 8, width = 1, columns = 32}
inline constexpr llvm::StringLiteral kGridAttr = "nn.grid";

/// On an argument of a kernel: its address is a multiple of its element's size
/// only, not of 64 bytes.
inline constexpr llvm::StringLiteral kUnalignedAttr = "nn.unaligned";

void writeGrid(mlir::func::FuncOp func, const GridSchedule &schedule);

/// Reads the schedule of the function. Fails with a diagnostic if there is
/// none, or if it is not one of the function's stages.
mlir::FailureOr<GridSchedule> readGrid(mlir::func::FuncOp func);

/// Points of the stage in one row, and elements that each of them combines.
int64_t countPoints(const StageSchedule &stage);
int64_t countReduced(const StageSchedule &stage);

/// Whether each thread keeps the stage's element in registers: no memory holds
/// it, unless it is a result.
bool isKept(const StageSchedule &stage);

/// The elements that a thread loads and stores at once where the stage runs
/// along the loop, by addresses that are multiples of as many elements. 1 if
/// there is no such number.
int64_t getVectorWidth(const StageSchedule &stage, unsigned loop);

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_GRID_GRIDSCHEDULE_H
