//===- NodeScopes.h - The modules that nodes belong to ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exporters know which module of the source program made a node, by its path,
// e.g. "encoder.layer.0.output". That is its scope. It stands in the node's
// location, as the child of the NameLoc, so that it goes wherever the name
// goes:
//
//   loc("node_MatMul_180"("encoder.layer.0.output.dense"))
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_NODESCOPES_H
#define PARTITA_DIALECTS_NN_NODESCOPES_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/SmallVector.h"

#include <string>

namespace partita::nn {

/// The location of an ONNX node. An empty scope: it has none.
mlir::Location makeNodeLoc(mlir::MLIRContext *context, llvm::StringRef name,
                           llvm::StringRef scope = "");

/// The scopes of the nodes that a location names, each once, in their order.
llvm::SmallVector<llvm::StringRef, 2> getScopes(mlir::Location loc);

/// The same for people, e.g. "encoder.layer.0.output, pooler": the first few,
/// then "...".
std::string getScopeText(mlir::Location loc);

/// What follows a node's name in a message: " (encoder.layer.0)", or nothing.
std::string inScope(mlir::Location loc);

} // namespace partita::nn

#endif // PARTITA_DIALECTS_NN_NODESCOPES_H
