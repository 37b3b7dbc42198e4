//===- Describe.h - The inputs and outputs of a model -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_GRAPH_DESCRIBE_H
#define PARTITA_COMPILER_IMPORT_GRAPH_DESCRIBE_H

#include "compiler/import/graph/Import.h"

#include "llvm/Support/raw_ostream.h"

namespace partita::import {

/// Prints the inputs (in their order, without initializers), the outputs and
/// the symbolic dimensions of the model at `options.modelPath`, as a table or
/// as one JSON object {"inputs": [{"name", "type", "sequence", "optional",
/// "shape"}], "outputs": [...], "dims": [...]}. The type and shape of a
/// sequence are those of its elements. A shape is null if its rank is unknown.
/// Nothing is compiled.
llvm::LogicalResult describeOnnxModel(mlir::MLIRContext &context,
                                      const ImportOptions &options,
                                      llvm::raw_ostream &out, bool json);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_GRAPH_DESCRIBE_H
