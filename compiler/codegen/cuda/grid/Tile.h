//===- Tile.h - Transposes through shared memory ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where results run along one row dimension, and an operand along another, no
// order of the threads reads and writes neighbours. So a block takes a *tile*
// of the two dimensions. It loads its part of the operand along the one, keeps
// it in shared memory, and computes and stores the results along the other:
//
//   transpose of 1024x1024xf32   1024 blocks, each with 32x32 elements
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_GRID_TILE_H
#define PARTITA_COMPILER_CODEGEN_CUDA_GRID_TILE_H

#include "compiler/codegen/cuda/grid/GridSchedule.h"

#include <optional>

namespace partita::codegen::cuda {

struct GridContext;
class NumberBuilder;

/// Two row dimensions of a kernel of points: the results are contiguous along
/// `written`, and the operands `staged` of its stages along `read`.
struct Transposition {
  unsigned read = 0, written = 0;
  llvm::SmallVector<mlir::OpOperand *> staged;
};

/// Nothing if operands and results run along the same dimension, or along such
/// short ones that caches serve as well.
std::optional<Transposition> findTransposition(const KernelSchedule &kernel);

/// The rows of a tile along each row dimension.
llvm::SmallVector<int64_t> chooseTile(const KernelSchedule &kernel,
                                      const Transposition &transposition);

/// How an operand's part of a tile lies in shared memory: a line of `pitch`
/// elements for each of the `lines` places along `written`. Neither those who
/// write nor those who read meet in a bank, where the dimensions are long.
struct StagedTile {
  int64_t pitch, lines;
};
StagedTile getStagedTile(const GridSchedule &schedule,
                         const Transposition &transposition,
                         mlir::OpOperand &operand);

/// The bytes of shared memory of all staged operands.
int64_t getStagedBytes(const GridSchedule &schedule,
                       const Transposition &transposition);

/// Emits what a thread does of the tile of its block. `name` begins the names
/// of its shared memory in `target`.
void emitTile(const NumberBuilder &b, GridContext &context,
              mlir::ModuleOp target, llvm::StringRef name, mlir::Value block);

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_GRID_TILE_H
