//===- ThreadBuilder.h - Builds what a thread does --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_ORDERED_THREADBUILDER_H
#define PARTITA_COMPILER_CODEGEN_CUDA_ORDERED_THREADBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace partita::codegen::cuda {

/// What those who emit the threads of a kernel share.
class ThreadBuilder {
protected:
  ThreadBuilder(mlir::Location loc, mlir::MLIRContext *context)
      : b(loc, context) {}

  /// A constant of i32, and one of index.
  mlir::Value number(int64_t value) {
    return mlir::arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  }
  mlir::Value index(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, value);
  }
  mlir::Value toIndex(mlir::Value x) {
    return mlir::arith::IndexCastUIOp::create(b, b.getIndexType(), x);
  }
  template <typename Fn> void when(mlir::Value condition, Fn emit) {
    auto branch =
        mlir::scf::IfOp::create(b, condition, /*withElseRegion=*/false);
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    emit();
  }
  template <typename Fn>
  void loop(mlir::Value begin, mlir::Value end, int64_t step, Fn emit) {
    auto op = mlir::scf::ForOp::create(b, begin, end, index(step));
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(op.getBody()->getTerminator());
    emit(op.getInductionVar());
  }

  mlir::ImplicitLocOpBuilder b;
};

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_ORDERED_THREADBUILDER_H
