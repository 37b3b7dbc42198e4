//===- KernelSchedule.h - The parallel loop of a kernel ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The last stage of a kernel is its *root*. A parallel loop of the root along
// which all other stages can be cut as well is a *row dimension*. The kernel's
// parallel loop runs over tiles of the row dimensions. An iteration computes
// the tile of every stage, temporaries included, before the next one begins.
//
//   softmax of 8x16x100     rows 8 and 16, tiles of 1: 128 iterations; the
//                           temporary of exponentials has 100 elements
//   pointwise on 1000000    one row dimension, tiles of 2048: 489 iterations
//   softmax along dim 0     of 100x64: the row dimension is the second
//
// A reduced dimension is never cut.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_KERNELS_KERNELSCHEDULE_H
#define PARTITA_COMPILER_CODEGEN_KERNELS_KERNELSCHEDULE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace partita::codegen {

/// Most bytes of temporaries on the stack of a thread.
inline constexpr int64_t kMaxStackBytes = 64 * 1024;

struct StageSchedule {
  mlir::linalg::GenericOp op;
  llvm::SmallVector<int64_t> sizes; ///< of its loops
  llvm::SmallVector<int> rows;      ///< row dimension of each loop, or -1
};

struct KernelSchedule {
  bool scalar = false; ///< no vectors anywhere
  llvm::SmallVector<StageSchedule> stages;
  llvm::SmallVector<int64_t> sizes, tiles; ///< of the row dimensions
  int64_t extent = 1;                      ///< tiles in all
  int64_t grain = 1;      ///< least tiles that a thread takes at a time
  int64_t stackBytes = 0; ///< set by `scheduleKernel`, not `readSchedule`
  llvm::SmallVector<int64_t> inPlace; ///< pairs (operand, result)

  const StageSchedule *find(mlir::Operation *stage) const;
  /// Number of tiles along each row dimension.
  llvm::SmallVector<int64_t> getTileCounts() const;
  /// Shape of the part of a stage's result that one iteration computes, for a
  /// temporary; and for each of its dimensions the row dimension, or -1.
  llvm::SmallVector<int64_t> getTileShape(const StageSchedule &stage) const;
  llvm::SmallVector<int> getRows(const StageSchedule &stage) const;
};

/// Decides the schedule of a function made by `buildKernel`. If not `tiled`, a
/// tile has one element of every row dimension. With
/// `nn.reference` it is the simplest one: an iteration of the parallel loop
/// computes one element of every row dimension, and no result shares bytes with
/// an operand.
KernelSchedule scheduleKernel(mlir::func::FuncOp func, bool tiled = true);

/// The attribute of a kernel that holds its schedule.
///
///   nn.schedule = {rows = [[0, -1], [0, -1]], tiles = [1], grain = 4,
///                  in_place = [0, 0]}
inline constexpr llvm::StringLiteral kScheduleAttr = "nn.schedule";

/// Writes the schedule into the IR, so that later passes need not decide it
/// again.
void writeSchedule(mlir::func::FuncOp func, const KernelSchedule &schedule);

/// Reads the schedule of the function. Fails with a diagnostic if there is
/// none, or if it does not match the function's stages.
mlir::FailureOr<KernelSchedule> readSchedule(mlir::func::FuncOp func);

/// Two loops of a stage, as in a transpose: the result is contiguous along
/// `written`, and some operands are contiguous along `read`.
struct Crossing {
  unsigned read, written;
  llvm::SmallVector<unsigned> operands; ///< contiguous along `read`
  /// The written loop is too short for vectors, and the result's stride along
  /// `read` is its length: the two loops are contiguous in memory.
  bool interleaves = false;
};

/// The crossing loops of a stage that does nothing but elementwise operations.
std::optional<Crossing> findCrossing(mlir::linalg::GenericOp op);

/// What a tensor is a view of; the tensor itself, if it is none.
mlir::Value skipViews(mlir::Value tensor);

/// The value whose bytes a tensor of the function uses. Looks through views,
/// stages and fills.
mlir::Value getStorageRoot(mlir::Value tensor);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_KERNELS_KERNELSCHEDULE_H
