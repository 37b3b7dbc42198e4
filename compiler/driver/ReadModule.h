//===- ReadModule.h - Models written in the nn dialect ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_DRIVER_READMODULE_H
#define PARTITA_COMPILER_DRIVER_READMODULE_H

#include "compiler/import/graph/Import.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::driver {

/// Whether the model is a module (`.mlir`) and no ONNX file.
bool isModuleFile(llvm::StringRef path);

/// Reads a model that a person wrote, or that --emit imported or nn printed: a
/// function `@main` of nn ops on tensors with static shapes, and `nn.weight`
/// symbols beside it. It may hold collectives (`dist`): then it is what one
/// device of a mesh computes. What the importer would say in attributes
/// (Import.h) is added where it is missing: a node, an input and an output is
/// called what its SSA value is called (`%hidden = nn.dot ...` is the node
/// "hidden"), or by its place. Only `nn.batch_axis` is left as it is: without
/// it the model computes one sample a micro-batch.
///
///   func.func @main(%x: tensor<4x8xf32> {nn.batch_axis = 0 : i64})
///       -> (tensor<4x8xf32> {nn.batch_axis = 0 : i64}) {
///     %y = nn.relu %x : tensor<4x8xf32>
///     return %y : tensor<4x8xf32>
///   }
///
/// Emits errors, with the place in the file, for what does not parse and for
/// what is no such function; and for options that bind shapes, because a module
/// has them.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
readModule(mlir::MLIRContext &context, const import::ImportOptions &options);

/// Reads an ONNX file or a module. Gradients that the model asks for are
/// computed in what is returned: it has no `nn.gradient`.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
readModel(mlir::MLIRContext &context, const import::ImportOptions &options);

} // namespace partita::driver

#endif // PARTITA_COMPILER_DRIVER_READMODULE_H
