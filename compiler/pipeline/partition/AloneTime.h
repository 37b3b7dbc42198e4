//===- AloneTime.h - What one device would take for a model -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PARTITION_ALONETIME_H
#define PARTITA_COMPILER_PIPELINE_PARTITION_ALONETIME_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::pipeline {

/// Whether a function computes only a part of the model, or joins parts:
/// tensors are cut, or replicas share a batch.
bool isCut(mlir::func::FuncOp function);

/// What one device would take for all of a function that is not cut, in the
/// form of `dist.alone_ns`: with the cores that each device has, and nobody
/// beside it. Of devices of several kinds it is the fastest. Fails with a
/// diagnostic.
mlir::FailureOr<mlir::DenseF64ArrayAttr>
predictAlone(mlir::func::FuncOp function);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PARTITION_ALONETIME_H
