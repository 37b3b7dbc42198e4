//===- ThreadBuilder.h - Builds what a thread does --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_ORDERED_THREADBUILDER_H
#define PARTITA_COMPILER_CODEGEN_CUDA_ORDERED_THREADBUILDER_H

#include "compiler/codegen/cuda/grid/EmitGrid.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace partita::codegen::cuda {

/// What those who emit the threads of a kernel share. The kernel stands in
/// `target`; see `declareKernel`.
class ThreadBuilder {
protected:
  ThreadBuilder(mlir::Location loc, mlir::func::FuncOp kernel,
                llvm::ArrayRef<int64_t> inPlace, mlir::ModuleOp target)
      : b(loc, kernel.getContext()), kernel(kernel), target(target),
        func(declareKernel(kernel, inPlace, target)) {
    b.setInsertionPoint(func.getBody().front().getTerminator());
  }

  /// Memory that the threads of a block share.
  mlir::Value share(llvm::StringRef what, int64_t elements, mlir::Type type) {
    return declareShared(b, b.getLoc(), target,
                         (kernel.getName() + "_" + what).str(), elements, type);
  }

  /// Where a thread is: in its block and in its warp (i32), and its block.
  mlir::Value getThread() {
    return mlir::NVVM::ThreadIdXOp::create(b, b.getI32Type());
  }
  mlir::Value getLane(mlir::Value thread) {
    return mlir::arith::RemUIOp::create(b, thread, number(kWarp));
  }
  mlir::Value getWarp(mlir::Value thread) {
    return mlir::arith::DivUIOp::create(b, thread, number(kWarp));
  }
  mlir::Value getBlock() {
    return toIndex(mlir::NVVM::BlockIdXOp::create(b, b.getI32Type()));
  }

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
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return mlir::arith::AddIOp::create(b, x, y);
  }
  mlir::Value mul(mlir::Value x, int64_t factor) {
    return mlir::arith::MulIOp::create(b, x, index(factor));
  }
  mlir::Value compare(mlir::arith::CmpIPredicate is, mlir::Value x,
                      mlir::Value y) {
    return mlir::arith::CmpIOp::create(b, is, x, y);
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
  mlir::func::FuncOp kernel;
  mlir::ModuleOp target;
  mlir::func::FuncOp func;
};

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_ORDERED_THREADBUILDER_H
