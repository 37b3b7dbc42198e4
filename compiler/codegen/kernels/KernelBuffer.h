//===- KernelBuffer.h - Tensors of a kernel in memory -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All buffers of a kernel are dense and row-major, so a view is its source with
// other strides.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_KERNELS_KERNELBUFFER_H
#define PARTITA_COMPILER_CODEGEN_KERNELS_KERNELBUFFER_H

#include "compiler/codegen/kernels/KernelSchedule.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

namespace partita::codegen {

/// A tensor in memory: its elements in a row.
mlir::MemRefType getFlatType(mlir::RankedTensorType type,
                             mlir::Attribute space = {});

/// Declares a table of constants in `target`, and gets it.
mlir::Value declareTable(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::ModuleOp target, const llvm::Twine &name,
                         mlir::DenseElementsAttr values,
                         mlir::Attribute space = {});

/// A tensor of the kernel in memory. The offset of an element is the sum of
/// position * stride over the dimensions, and the base. If `rows` names a row
/// dimension for a dimension, its positions count from the tile's start.
struct KernelBuffer {
  mlir::Value memref;
  llvm::SmallVector<int64_t> strides;
  llvm::SmallVector<int> rows;
  mlir::Value base; ///< offset of the first element; null: 0
};

/// State that the stages of a kernel share while it is emitted.
struct EmitContext {
  explicit EmitContext(const KernelSchedule &schedule) : schedule(schedule) {}

  const KernelSchedule &schedule;
  llvm::DenseMap<mlir::Value, KernelBuffer> buffers;
  llvm::SmallVector<mlir::Value> rowStarts; ///< first position of the tile
  llvm::SmallVector<mlir::Value> rowCounts; ///< null where it is static

  /// The buffer of any tensor of the kernel.
  KernelBuffer getBuffer(mlir::Value tensor);
};

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_KERNELS_KERNELBUFFER_H
