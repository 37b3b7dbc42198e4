//===- LibraryCall.h - Clusters that are library calls ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A cluster is a library call if the library computes one of its ops, the root.
// Each of its other ops must be a view of the operands or of the result that
// strides can express, or a step of the library's epilogue (a post-op). Calls
// compute with f32, or multiply integers of 8 bits. Calls that depend on the
// order of elements (NNOrdered.td) take any type.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_LIBRARYCALL_H
#define PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_LIBRARYCALL_H

#include "compiler/codegen/Backend.h"

namespace partita::codegen::onednn {

/// A backend, as far as it is about calls.
class LibraryBackend : public Backend {
public:
  bool isCallRoot(mlir::Operation *op) const override;
  bool needsCall(mlir::Operation *op) const override;
  plan::CallAttr matchCall(llvm::ArrayRef<mlir::Operation *> ops,
                           llvm::ArrayRef<mlir::Value> inputs,
                           llvm::ArrayRef<mlir::Value> results) const override;
  const CallTuning *getCallTuning() const override;
  int64_t getScratchBytes(plan::CallAttr call, bool packed,
                          mlir::Type element) const override;
};

} // namespace partita::codegen::onednn

#endif // PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_LIBRARYCALL_H
