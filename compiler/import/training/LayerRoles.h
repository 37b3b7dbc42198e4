//===- LayerRoles.h - What a layer begins with ------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How a parameter is drawn at random depends on the layer that reads it: on how
// many numbers the layer sums (fan-in), and how many sums it makes of each
// (fan-out). Weights get both, and how PyTorch's layer of the kind draws it
// (dialects/nn/CheckAttr.h).
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_TRAINING_LAYERROLES_H
#define PARTITA_COMPILER_IMPORT_TRAINING_LAYERROLES_H

#include "compiler/import/graph/NodeImport.h"

#include "mlir/IR/SymbolTable.h"

namespace partita::import {

/// Notes at the weights that a node reads what they are to it. The first node
/// that reads a weight decides.
void noteRoles(const onnx::NodeProto &node, llvm::ArrayRef<ModelValue> inputs,
               llvm::function_ref<nn::WeightOp(llvm::StringRef)> findWeight);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_TRAINING_LAYERROLES_H
