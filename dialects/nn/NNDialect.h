//===- NNDialect.h - The nn dialect -------------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_NNDIALECT_H
#define PARTITA_DIALECTS_NN_NNDIALECT_H

#include "dialects/nn/NNInterfaces.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/nn/NNDialect.h.inc"
#include "dialects/nn/NNEnums.h.inc"

#define GET_OP_CLASSES
#include "dialects/nn/NNOps.h.inc"

namespace partita::nn {

/// Names of the dialect's discardable attributes.
inline constexpr llvm::StringLiteral kNameAttr = "nn.name";
inline constexpr llvm::StringLiteral kBatchAxisAttr = "nn.batch_axis";
inline constexpr llvm::StringLiteral kClusterAttr = "nn.cluster";
inline constexpr llvm::StringLiteral kLoadAttr = "nn.load";

/// Bytes of a tensor in memory: one byte for each element narrower than that.
int64_t getByteSize(mlir::Type type);

/// The signless type in which code generation holds an element of `type`:
/// `ui8` -> `i8`; other types are themselves.
mlir::Type getSignlessType(mlir::Type type);

/// The name a person knows the op by: the ONNX node names in its location,
/// joined by "+" (the first few, then "..."), or the op's own name.
std::string getNodeName(mlir::Location loc);
std::string getNodeName(mlir::Operation *op);

} // namespace partita::nn

#endif // PARTITA_DIALECTS_NN_NNDIALECT_H
