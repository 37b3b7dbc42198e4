//===- InputShapes.h - Static shapes of a model's inputs --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_INPUTSHAPES_H
#define PARTITA_COMPILER_IMPORT_INPUTSHAPES_H

#include "compiler/import/Import.h"

#include "onnx/onnx_pb.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

#include <vector>

namespace partita::import {

/// An input of the model that is not an initializer.
struct ModelInput {
  std::string name;
  int64_t port = 0;
  mlir::RankedTensorType type;
  /// Name of dimension 0 in the model; empty if it has none.
  std::string batchDim;
  /// The value, if it is fixed when compiling.
  mlir::DenseElementsAttr value;
};

/// Gives every input a static shape: sizes from the model, from `--shape`,
/// `--dim`, and from the values of fixed inputs; a symbolic dimension has one
/// size wherever its name stands. Emits errors for what contradicts, for names
/// in the options that the model does not have, and for what stays open.
mlir::FailureOr<std::vector<ModelInput>>
bindInputs(const onnx::GraphProto &graph, const ImportOptions &options,
           mlir::Location loc);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_INPUTSHAPES_H
