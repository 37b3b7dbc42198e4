//===- ThreadBuilder.h - Builds what a thread does --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_ORDERED_THREADBUILDER_H
#define PARTITA_COMPILER_CODEGEN_CUDA_ORDERED_THREADBUILDER_H

#include "compiler/codegen/cuda/grid/EmitGrid.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

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
    return declareShared(b, target, (kernel.getName() + "_" + what).str(),
                         elements, type);
  }

  /// Where a thread is: in its block and in its warp (i32), and its block.
  mlir::Value getThread() {
    return mlir::NVVM::ThreadIdXOp::create(b, b.getI32Type());
  }
  mlir::Value getLane(mlir::Value thread) {
    return b.rem(thread, b.number(kWarp));
  }
  mlir::Value getWarp(mlir::Value thread) {
    return b.div(thread, b.number(kWarp));
  }
  mlir::Value getBlock() {
    return b.toIndex(mlir::NVVM::BlockIdXOp::create(b, b.getI32Type()));
  }

  NumberBuilder b;
  mlir::func::FuncOp kernel;
  mlir::ModuleOp target;
  mlir::func::FuncOp func;
};

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_ORDERED_THREADBUILDER_H
