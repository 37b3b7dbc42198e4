//===- Storage.h - How elements lie in memory -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels compute with signless types (`nn::getSignlessType`). In memory some
// elements have another type; a boolean, for example, takes a byte:
//
// | nn       | scalar | memory |
// | ---      | ---    | ---    |
// | f32      | f32    | f32    |
// | ui8      | i8     | i8     |
// | i1       | i1     | i8     |
// | bf16     | bf16   | i16    |
// | f8E4M3FN | i8     | i8     |
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_KERNELS_STORAGE_H
#define PARTITA_COMPILER_CODEGEN_KERNELS_STORAGE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace partita::codegen {

/// The type of one element in memory.
mlir::Type getStorageType(mlir::Type element);

/// The type of a tensor of stored elements.
mlir::RankedTensorType getStorageTensor(llvm::ArrayRef<int64_t> shape,
                                        mlir::Type element);

/// Convert a stored element to the scalar that it stands for, and back.
mlir::Value fromStorage(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                        mlir::Type element);
mlir::Value toStorage(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                      mlir::Type element);

/// Converts a dense nn constant to stored elements, in `shape`, which must have
/// the same number of elements.
mlir::DenseElementsAttr getStorageConstant(mlir::DenseElementsAttr value,
                                           llvm::ArrayRef<int64_t> shape);

/// `shape` without its dimensions of size 1.
llvm::SmallVector<int64_t> squeeze(llvm::ArrayRef<int64_t> shape);

/// Reshapes a tensor to a shape with the same number of elements.
mlir::Value reshapeTensor(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value tensor, llvm::ArrayRef<int64_t> shape);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_KERNELS_STORAGE_H
