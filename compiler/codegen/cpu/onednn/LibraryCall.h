//===- LibraryCall.h - Clusters that the library computes whole -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What CpuBackend answers about calls; see codegen::Backend.
//
// A cluster is a library call if it has one op that a library computes, its
// root, and all its other ops are either views of the operands and the result
// that strides can express, or steps of the library's epilogue (post-ops).
// Calls compute with f32, or multiply integers of 8 bits; those that depend on
// the order of elements (NNOrdered.td) take any type.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_LIBRARYCALL_H
#define PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_LIBRARYCALL_H

#include "compiler/codegen/Backend.h"

namespace partita::codegen::onednn {

/// Whether a call may have the op as its root.
bool isCallRoot(mlir::Operation *op);

/// Whether only a call can compute the op: there are no loops of ours for it.
bool needsLibrary(mlir::Operation *op);

/// Whether it adds upon its result's bytes faster than from elsewhere.
bool accumulates(mlir::Operation *root);

/// The call that computes all of the ops, given in topological order, or null.
/// `inputs` and `results` are what comes in and goes out: views number them so.
plan::CallAttr matchLibraryCall(llvm::ArrayRef<mlir::Operation *> ops,
                                llvm::ArrayRef<mlir::Value> inputs,
                                llvm::ArrayRef<mlir::Value> results);

/// Fails, with a diagnostic, for a call on more than the library counts.
llvm::LogicalResult checkExtents(nn::ClusterOp cluster);

std::optional<int64_t> getPackedBytes(plan::CallAttr call, unsigned operand,
                                      mlir::Type element);
int64_t getScratchBytes(plan::CallAttr call, bool packed);

/// Products, convolutions, pools and attention are measured.
std::optional<CallWork> getCallWork(llvm::ArrayRef<mlir::Operation *> ops,
                                    analysis::Rates &rates, int64_t lanes);

} // namespace partita::codegen::onednn

#endif // PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_LIBRARYCALL_H
