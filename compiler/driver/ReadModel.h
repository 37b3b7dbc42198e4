//===- ReadModel.h - A model, from whatever file ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_DRIVER_READMODEL_H
#define PARTITA_COMPILER_DRIVER_READMODEL_H

#include "compiler/import/graph/Import.h"

namespace partita::driver {

/// Reads an ONNX file or a module (ReadModule.h). Gradients that the model asks
/// for are computed in what is returned: it has no `nn.gradient`.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
readModel(mlir::MLIRContext &context, const import::ImportOptions &options);

} // namespace partita::driver

#endif // PARTITA_COMPILER_DRIVER_READMODEL_H
