//===- GraphImport.h - The nodes of a model, one after another --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_GRAPH_GRAPHIMPORT_H
#define PARTITA_COMPILER_IMPORT_GRAPH_GRAPHIMPORT_H

#include "compiler/files/Globs.h"
#include "compiler/import/annotations/AnnotatedModel.h"
#include "compiler/import/annotations/DeviceAnnotations.h"
#include "compiler/import/graph/GraphPrep.h"
#include "compiler/import/graph/Import.h"
#include "compiler/import/graph/InputShapes.h"
#include "compiler/import/graph/NodeImport.h"
#include "compiler/import/graph/OpTable.h"
#include "compiler/import/model/Weights.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

namespace partita::import {

/// An output of the model, or an element of one that is a sequence.
struct ModelOutput {
  std::string name;
  int64_t port = 0;
  mlir::Value value;
  /// The type that the model declares; null if it is not a tensor type.
  const onnx::TypeProto::Tensor *declared = nullptr;
};

/// Builds `@main` of a model whose versions and ops have been checked.
class GraphImport : ValueSource {
public:
  /// `numbers` is null if the nodes need none.
  GraphImport(const ModelFile &file, const LocalFunctions &functions,
              const DeviceAnnotations &annotations, const NodeNumbers *numbers,
              const ImportOptions &options, mlir::ModuleOp module);

  llvm::LogicalResult run(const ModelInputs &inputs);

private:
  /// A scope of names: the graph, the body of a function, or a graph in an
  /// attribute. The last one also sees the names of the scope around it.
  struct Scope {
    llvm::StringMap<ModelValue> values;
    Opsets opsets;
    Scope *outer = nullptr;
    /// Attributes of the call; null in the graph.
    const llvm::StringMap<const onnx::AttributeProto *> *attributes = nullptr;
    /// The location of all nodes of the scope; empty: each node has its own.
    std::optional<mlir::Location> location;
    std::string prefix;
    /// The module of nodes that say none: that of the node around them.
    std::string module;
    int depth = 0;
    /// The nodes of the scope, in order.
    const NodeList *nodes = nullptr;
    /// Whether nodes are imported once more, with other operands.
    bool isAgain = false;

    /// A scope of the same nodes that also sees the names of this one.
    Scope nest() {
      return {{},     opsets, this,      attributes, location,
              prefix, module, depth + 1, nodes,      isAgain};
    }
  };

  mlir::DenseElementsAttr readWeight(llvm::StringRef symbol) override;
  llvm::StringRef getInputName(mlir::BlockArgument argument) override;
  mlir::Value materialize(const onnx::TensorProto &tensor, llvm::StringRef name,
                          mlir::Location loc) override;

  mlir::FailureOr<llvm::SmallVector<ModelValue>>
  importBody(const onnx::GraphProto &body, llvm::ArrayRef<ModelValue> arguments,
             llvm::StringRef part) override;

  llvm::LogicalResult expandBody(const onnx::FunctionProto &body) override;

  mlir::FailureOr<ModelValue>
  computeFrom(llvm::StringRef name, llvm::ArrayRef<Binding> bindings) override;
  NodeList findNodesFrom(Scope &scope, llvm::StringRef name,
                         llvm::ArrayRef<Binding> bindings,
                         llvm::StringSet<> &reached);

  NodeMode getMode(llvm::StringRef node) override;
  mlir::Value getSampleNumbers(NodeImport &n) override;
  mlir::Value getSeed(NodeImport &n) override;
  void makeState(nn::ParameterOp parameter) override;
  mlir::Value addInput(NodeImport &n, llvm::StringRef name,
                       mlir::RankedTensorType type);

  /// The value of a tensor in the body of a node: of a node `Constant`, or an
  /// initializer. It is made once, even if the body is imported several times.
  mlir::Value materializeInBody(const onnx::TensorProto &tensor,
                                llvm::StringRef name, mlir::Location loc,
                                const Scope &scope, bool isNode);

  void addArguments(llvm::ArrayRef<ModelInput> inputs);
  void bindArguments(const ModelInputs &inputs, Scope &scope);
  mlir::FailureOr<std::vector<ModelOutput>> collectOutputs(Scope &scope);
  void addOutput(const onnx::ValueInfoProto &info, int64_t port,
                 const ModelValue &value, std::vector<ModelOutput> &outputs);
  void checkDeclaredType(const ModelOutput &output);
  void recordCollection(llvm::StringRef name, int64_t port, bool isOutput,
                        const Collection &collection);
  void setBatchAxis();
  void setReplicaAxes(llvm::ArrayRef<ModelOutput> outputs);

  /// Looks a name up in the scope and those around it. The pointer is null if
  /// none knows the name. The value is null if the call of a function omits
  /// that input.
  const ModelValue *find(Scope &scope, llvm::StringRef name);
  /// Whether a name is one of the model's initializers, seen from the scope.
  bool hasInitializer(Scope &scope, llvm::StringRef name);
  static Scope &getOutermost(Scope &scope);
  ModelValue lookup(Scope &scope, llvm::StringRef name, mlir::Location loc);

  /// A node, and what it reads.
  struct Call {
    const onnx::NodeProto &node;
    llvm::ArrayRef<ModelValue> inputs;
    mlir::Location loc;
    Scope &scope;
    int64_t opset = 1; ///< in force for the op
    OpImport op = {};  ///< none for a function of the model
  };

  /// Imports all nodes of a scope, which has the values that they begin with.
  llvm::LogicalResult
  importNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
              mlir::Location loc, Scope &scope);
  llvm::LogicalResult importNode(const onnx::NodeProto &node, Scope &scope);
  llvm::LogicalResult importOp(Call call);
  /// Notes what a node says of devices, and its number.
  llvm::LogicalResult annotate(const onnx::NodeProto &node,
                               llvm::ArrayRef<ModelValue> inputs,
                               mlir::NameLoc loc, Scope &scope);
  void writeAnnotations();
  llvm::LogicalResult importByTable(Call call);
  llvm::LogicalResult expandSchemaFunction(const Call &call);
  llvm::LogicalResult expand(const Call &call,
                             const onnx::FunctionProto &function);
  void foldSmallWeights(llvm::MutableArrayRef<ModelValue> inputs);
  void bindResults(const onnx::NodeProto &node,
                   llvm::ArrayRef<ModelValue> results, Scope &scope);

  const ModelFile &file;
  const LocalFunctions &functions;
  const ImportOptions &options;
  mlir::ModuleOp module;
  mlir::OpBuilder b;
  Weights weights;
  mlir::func::FuncOp main;
  llvm::StringMap<const onnx::TensorProto *> initializers;
  llvm::SmallVector<const ModelInput *>
      arguments;          ///< but for those of training
  files::Globs modeGlobs; ///< TrainingOptions::evalMode
  mlir::Value sampleNumbers, seed;
  llvm::SmallVector<mlir::Attribute> collections; ///< `nn.collections`
  /// The node that is being imported: `importBody`, `expandBody` and
  /// `materialize` work for it.
  const Call *current = nullptr;
  /// Weights in the bodies of nodes, which are imported several times.
  llvm::DenseMap<const onnx::TensorProto *, mlir::Value> bodyWeights;
  /// The random nodes before a node: it draws the same numbers when it is
  /// imported once more.
  llvm::DenseMap<const onnx::NodeProto *, int64_t> randomBefore;
  llvm::SetVector<mlir::Attribute> nodeNames;
  llvm::SmallVector<mlir::Attribute> nodeOutputs; ///< by node name
  llvm::SmallVector<mlir::Attribute> nodeScopes;  ///< by node name
  llvm::SmallVector<mlir::Attribute> nodeOps;     ///< by node name
  const DeviceAnnotations &annotations;
  const NodeNumbers *numbers;
  dist::Annotations annotated, numbered; ///< what becomes attributes
  /// The stage of the node that is being imported, or of one around it.
  std::optional<int64_t> stage;
  int64_t numNodes = 0;
};

/// The location of a value that no node makes: its name.
mlir::Location getNodeLoc(mlir::MLIRContext *context, const llvm::Twine &name);

/// Notes at the weights that a node reads what they are to it, if nothing is
/// noted yet: what fan-in and fan-out they have, and how PyTorch's layer of the
/// kind draws them (dialects/nn/CheckAttr.h).
void noteRoles(const onnx::NodeProto &node, llvm::ArrayRef<ModelValue> inputs,
               Weights &weights);

/// Checks the number and the types of a node's inputs, and its attributes.
llvm::LogicalResult checkNode(const onnx::NodeProto &node,
                              const onnx::OpSchema &schema,
                              llvm::ArrayRef<ModelValue> inputs,
                              mlir::Location loc);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_GRAPH_GRAPHIMPORT_H
