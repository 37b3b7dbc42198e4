//===- AnnotatedModel.h - A model's file with annotations -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_ANNOTATIONS_ANNOTATEDMODEL_H
#define PARTITA_COMPILER_IMPORT_ANNOTATIONS_ANNOTATEDMODEL_H

#include "dialects/dist/Annotations.h"

#include "onnx/onnx_pb.h"

#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/DenseMap.h"

namespace partita::import {

/// The nodes of a model, numbered as they follow one another in its file. A
/// node comes before those of the graphs in its attributes. Nodes of the graph
/// have the numbers 0, 1, ..., those of functions -1, -2, ....
using NodeNumbers = llvm::DenseMap<const onnx::NodeProto *, int64_t>;

NodeNumbers numberNodes(const onnx::ModelProto &model);

/// Copies a model's file, and writes annotations into the copy. They replace
/// all that the model has. `annotations.nodes` have numbers (NodeNumbers). A
/// model in text form becomes a binary one. The model has IR version 11 at
/// least.
///
/// Everything else is copied byte for byte, from the mapped file. Weights in
/// other files stay where they are. So the copy must be in the folder of the
/// model, or in one above it, if there are any.
///
/// The file appears whole or not at all. On failure an error is emitted at
/// `loc`.
llvm::LogicalResult writeAnnotatedModel(llvm::StringRef modelPath,
                                        llvm::StringRef path,
                                        const dist::Annotations &annotations,
                                        llvm::ArrayRef<std::string> deviceNames,
                                        mlir::Location loc);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_ANNOTATIONS_ANNOTATEDMODEL_H
