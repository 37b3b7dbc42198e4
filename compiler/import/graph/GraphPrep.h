//===- GraphPrep.h - Checks and order of an ONNX graph ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_GRAPH_GRAPHPREP_H
#define PARTITA_COMPILER_IMPORT_GRAPH_GRAPHPREP_H

#include "compiler/import/model/ModelFile.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace partita::import {

/// Opset version in use, by domain; the standard domain is "".
using Opsets = llvm::StringMap<int64_t>;

/// Model-local functions, by `getFunctionKey`.
using LocalFunctions = llvm::StringMap<const onnx::FunctionProto *>;

using NodeList = std::vector<const onnx::NodeProto *>;

/// "" for "ai.onnx", which is another name of the standard domain.
llvm::StringRef normalizeDomain(llvm::StringRef domain);

std::string getFunctionKey(llvm::StringRef domain, llvm::StringRef name,
                           llvm::StringRef overload);

/// The node's name; "OpType:output" if it has none.
std::string getNodeDisplayName(const onnx::NodeProto &node);

/// Reads the opset imports of a model or function.
Opsets
getOpsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>
              &imports);

/// Checks that we know the model's IR version and opsets.
llvm::LogicalResult checkVersions(const onnx::ModelProto &model,
                                  mlir::Location loc);

/// The type of an attribute whose value is in a field.
std::optional<onnx::AttributeProto::AttributeType>
getAttributeType(uint64_t field);

/// Gives attributes without a type, as models of IR version 1 have them, their
/// type.
void completeAttributeTypes(onnx::ModelProto &model);

/// Some exporters write a constant twice under one name. If several
/// initializers or `Constant` nodes define a name with the same bytes, this
/// keeps the first and emits a remark. It looks at the graph, at the bodies of
/// functions and at graphs in attributes. Emits an error if the bytes differ.
llvm::LogicalResult mergeRepeatedConstants(ModelFile &file, mlir::Location loc);

/// The names that a node reads: its inputs, the outer names that the graphs in
/// its attributes read, and what a Gradient differentiates. Omitted inputs are
/// left out.
std::vector<std::string> getReadNames(const onnx::NodeProto &node);

/// Sorts the nodes so that each comes after those it reads from, and keeps the
/// given order wherever possible. `isGiven` says which names are inputs and
/// initializers, and `isOuter` which other ones the scopes around the graph
/// define. Emits an error if a name is defined twice or not at all, or if there
/// is a cycle.
mlir::FailureOr<NodeList>
sortNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
          mlir::Location loc, llvm::function_ref<bool(llvm::StringRef)> isGiven,
          llvm::function_ref<bool(llvm::StringRef)> isOuter);

/// Looks at all ops of the model, of the functions it calls and of its
/// subgraphs. Emits one error that lists those that can neither be imported nor
/// expanded.
llvm::LogicalResult checkSupported(const onnx::ModelProto &model,
                                   const LocalFunctions &functions,
                                   mlir::Location loc);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_GRAPH_GRAPHPREP_H
