//===- LibraryCall.h - Clusters that are library calls ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CpuBackend answers questions about calls with these functions; see
// codegen::Backend.
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

/// Whether a call may have the op as its root.
bool isCallRoot(mlir::Operation *op);

/// Whether only a call can compute the op, because there is no kernel for it.
bool needsLibrary(mlir::Operation *op);

/// Whether a call with this root is faster if it accumulates into its result's
/// bytes than if it adds a tensor from elsewhere.
bool accumulates(mlir::Operation *root);

/// The call that computes all of the ops, given in topological order, or null.
/// `inputs` and `results` are the values that enter and leave the call. Views
/// refer to them by their positions here.
plan::CallAttr matchLibraryCall(llvm::ArrayRef<mlir::Operation *> ops,
                                llvm::ArrayRef<mlir::Value> inputs,
                                llvm::ArrayRef<mlir::Value> results);

/// Fails, with a diagnostic, if a call is larger than the library's integers
/// can count.
llvm::LogicalResult checkExtents(nn::ClusterOp cluster);

std::optional<int64_t> getPackedBytes(plan::CallAttr call, unsigned operand,
                                      mlir::Type element);
int64_t getScratchBytes(plan::CallAttr call, bool packed, mlir::Type element);

/// The work of the call of these ops. Nothing if such calls are not measured.
/// Products, convolutions, pools and attention are measured.
std::optional<CallWork> getCallWork(llvm::ArrayRef<mlir::Operation *> ops,
                                    analysis::Rates &rates, int64_t lanes);

} // namespace partita::codegen::onednn

#endif // PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_LIBRARYCALL_H
