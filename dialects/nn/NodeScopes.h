//===- NodeScopes.h - The names of nodes, and their modules -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The scope of a node is the path of the module of the source program that made
// it, e.g. "encoder.layer.0.output". Exporters record it. The scope is the
// child of the node's NameLoc, so it goes wherever the name goes:
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

/// On an `nn.cast` to halves: no node asks for the conversion. It ends what a
/// node computes in f32 by itself.
inline constexpr llvm::StringLiteral kInnerAttr = "nn.inner";

/// The location of an ONNX node. An empty scope means that the node has none.
mlir::Location makeNodeLoc(mlir::MLIRContext *context, llvm::StringRef name,
                           llvm::StringRef scope = "");

/// The names of the ONNX nodes in a location, each once, in their order.
llvm::SmallVector<llvm::StringRef, 2> getNodeNames(mlir::Location loc);

/// The scopes of the nodes that a location names, each once, in their order.
llvm::SmallVector<llvm::StringRef, 2> getScopes(mlir::Location loc);

/// The scopes as text, e.g. "encoder.layer.0.output, pooler". After the first
/// few it has "...".
std::string getScopeText(mlir::Location loc);

/// The text that follows a node's name in a message: " (encoder.layer.0)", or
/// nothing.
std::string inScope(mlir::Location loc);

} // namespace partita::nn

#endif // PARTITA_DIALECTS_NN_NODESCOPES_H
