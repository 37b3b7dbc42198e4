//===- GraphImport.h - The nodes of a model, one after another --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_GRAPHIMPORT_H
#define PARTITA_COMPILER_IMPORT_GRAPHIMPORT_H

#include "compiler/import/GraphPrep.h"
#include "compiler/import/InputShapes.h"
#include "compiler/import/NodeImport.h"
#include "compiler/import/OpTable.h"
#include "compiler/import/Weights.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

namespace partita::import {

/// Writes a node's pipeline stage on the ops that are made for it.
struct StageMarker : mlir::OpBuilder::Listener {
  void notifyOperationInserted(mlir::Operation *op,
                               mlir::OpBuilder::InsertPoint) override;
  std::optional<int64_t> stage;
};

/// Builds `@main` of a model whose versions and ops have been checked.
class GraphImport : ValueSource {
public:
  GraphImport(const ModelFile &file, const LocalFunctions &functions,
              mlir::ModuleOp module);

  llvm::LogicalResult run(llvm::ArrayRef<ModelInput> inputs);

private:
  /// Where names are looked up: the graph, or the body of a function.
  struct Scope {
    llvm::StringMap<mlir::Value> values;
    Opsets opsets;
    /// Attributes of the call; null in the graph.
    const llvm::StringMap<const onnx::AttributeProto *> *attributes = nullptr;
    /// Location of all nodes, if they have none of their own.
    std::optional<mlir::Location> location;
    std::string prefix;
    int depth = 0;
  };

  mlir::DenseElementsAttr readWeight(llvm::StringRef symbol) override;
  llvm::StringRef getInputName(mlir::BlockArgument argument) override;
  mlir::Value materialize(const onnx::TensorProto &tensor, llvm::StringRef name,
                          mlir::Location loc) override;

  llvm::LogicalResult addArguments(llvm::ArrayRef<ModelInput> inputs);
  llvm::LogicalResult addOutputs(llvm::ArrayRef<ModelInput> inputs);
  void checkDeclaredType(const onnx::ValueInfoProto &info, mlir::Value value);
  void setBatchAxis(llvm::ArrayRef<ModelInput> inputs);

  mlir::Value lookup(Scope &scope, llvm::StringRef name, mlir::Location loc);
  llvm::LogicalResult importNode(const onnx::NodeProto &node, Scope &scope);
  llvm::LogicalResult importByTable(const onnx::NodeProto &node,
                                    const OpImport &op, int64_t opset,
                                    llvm::ArrayRef<mlir::Value> inputs,
                                    mlir::Location loc, Scope &scope);
  llvm::LogicalResult expandSchemaFunction(const onnx::NodeProto &node,
                                           const OpImport &op, int64_t opset,
                                           llvm::ArrayRef<mlir::Value> inputs,
                                           mlir::Location loc, Scope &scope);
  llvm::LogicalResult expand(const onnx::NodeProto &node,
                             const onnx::FunctionProto &function,
                             const onnx::OpSchema *schema, bool isLocal,
                             llvm::ArrayRef<mlir::Value> inputs,
                             mlir::Location loc, Scope &scope);
  void foldSmallWeights(llvm::MutableArrayRef<mlir::Value> inputs);
  llvm::LogicalResult bindResults(const onnx::NodeProto &node,
                                  llvm::ArrayRef<mlir::Value> results,
                                  mlir::Location loc, Scope &scope);

  const ModelFile &file;
  const LocalFunctions &functions;
  mlir::ModuleOp module;
  mlir::OpBuilder b;
  StageMarker marker;
  Weights weights;
  mlir::func::FuncOp main;
  llvm::StringMap<const onnx::TensorProto *> initializers;
  llvm::SmallVector<std::string> argumentNames;
  llvm::SetVector<mlir::Attribute> nodeNames;
  int64_t numNodes = 0;
};

/// The location of a node: its name.
mlir::Location getNodeLoc(mlir::MLIRContext *context, const llvm::Twine &name);

/// Checks the number and the types of a node's inputs, and its attributes.
llvm::LogicalResult checkNode(const onnx::NodeProto &node,
                              const onnx::OpSchema &schema,
                              llvm::ArrayRef<mlir::Value> inputs,
                              mlir::Location loc);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_GRAPHIMPORT_H
