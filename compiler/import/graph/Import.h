//===- Import.h - ONNX models to the nn dialect -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads an ONNX model, binary or textual (`.onnxtxt`), and builds a module of
// the nn dialect. The module has `nn.weight` symbols that name bytes of the
// model's files, and one function `@main` with static shapes, explicit
// broadcasts and no shape arithmetic.
//
//   module attributes {nn.model = "mnist"} {
//     nn.weight @w "w" : tensor<784x10xf32> in "mnist.onnx" at 120 bytes 31360
//     func.func @main(%x: tensor<8x784xf32> {nn.name = "x", nn.port = 0 : i64,
//                                            nn.batch_axis = 0 : i64})
//         -> (tensor<8x10xf32> {nn.name = "y", nn.port = 0 : i64, ...})
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_GRAPH_IMPORT_H
#define PARTITA_COMPILER_IMPORT_GRAPH_IMPORT_H

#include "compiler/import/training/TrainingMode.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

#include <map>
#include <string>

namespace partita::import {

/// Discardable attributes that the importer writes.
inline constexpr llvm::StringLiteral kModelAttr = "nn.model";
inline constexpr llvm::StringLiteral kPortAttr = "nn.port";
inline constexpr llvm::StringLiteral kBoundInputsAttr = "nn.bound_inputs";
inline constexpr llvm::StringLiteral kCollectionsAttr = "nn.collections";
inline constexpr llvm::StringLiteral kNodesAttr = "nn.nodes";
inline constexpr llvm::StringLiteral kNodeOutputsAttr = "nn.node_outputs";
inline constexpr llvm::StringLiteral kNodeOpsAttr = "nn.node_ops";
inline constexpr llvm::StringLiteral kNodeScopesAttr = "nn.node_scopes";
/// On the module: the model itself says how many samples there are.
inline constexpr llvm::StringLiteral kFixedSamplesAttr = "nn.fixed_samples";

struct ImportOptions {
  std::string modelPath;
  /// Shapes of inputs by name: `--shape x=8x3x224x224`.
  llvm::StringMap<llvm::SmallVector<int64_t>> shapes;
  /// Sizes of symbolic dimensions by name: `--dim batch=8`.
  llvm::StringMap<int64_t> dims;
  /// Lengths of inputs that are sequences, by name: `--length x=3`.
  llvm::StringMap<int64_t> lengths;
  /// Inputs that are optionals without a value: `--absent x`.
  std::vector<std::string> absent;
  /// The axis along which samples of an input are counted, by name: `--samples
  /// x=1`. -1: it has no samples.
  std::map<std::string, int64_t> samples;
  /// Imports the model as if there were so many samples, whatever the model
  /// says; 0: as many as there are.
  int64_t sampleCount = 0;
  /// Inputs that are fixed when compiling, and their values (`--constant n=8`)
  /// or the files (.pb or .npy) that hold them: `--constant shape=FILE`. They
  /// are not arguments of `@main`. The module's `nn.bound_inputs` lists them as
  /// {name, port, type}.
  std::map<std::string, std::string> constants;
  /// Whether it is said of each sample whether it has wrong indices, however
  /// few a sample has.
  bool checkSamples = false;
  /// How many replicas there are whose step the model is. It decides the shapes
  /// of what crosses replicas (the domain ai.partita).
  int64_t replicas = 1;
  /// Whether to write `nn.node_outputs`: for each entry of `nn.nodes` the name
  /// of its output, empty if the node has several.
  bool recordTensors = false;
  /// Lists their ops in `nn.node_ops`, as ONNX calls them, e.g. "MatMul".
  bool recordOps = false;
  /// Whether parameters are differentiated: floats of rank 1 and more, which a
  /// node would fold with others or which are one number, stay weights.
  bool keepWeights = false;
  /// Of normalizations and dropouts.
  TrainingOptions training;
  /// The device configuration whose annotations are read. Empty: the only one.
  std::string configuration;
  /// What says how the model is split, e.g. "--devices": the model's own
  /// annotations are not read then. Empty: they are.
  std::string annotationsOverride;
  /// Files of weights need not be there: their names and sizes suffice for a
  /// plan.
  bool filesMayBeAbsent = false;
  /// Lists the nodes in `dist.numbered_nodes`, so that annotations can be
  /// written into the file (annotations/AnnotatedModel.h).
  bool numberNodes = false;
};

/// Imports a model. All dialects it needs are loaded into the context. On
/// failure at least one error has been emitted through the context. An error
/// about an ONNX node has the location of the node.
///
/// A sequence among the inputs or outputs becomes one argument or result per
/// element, named `x.0`, `x.1`, .... An optional becomes one or none. The
/// module's `nn.collections` lists both as {name, port, kind, output, length};
/// the length of an absent optional is -1.
///
/// The arguments and results of `@main` have these attributes. `nn.name` is the
/// name in the model. `nn.port` is the position among the model's inputs that
/// are not initializers, or among its outputs. `nn.batch_axis` is the axis of
/// an argument along which samples are counted, as `samples` says. Otherwise it
/// is 0 on all arguments if dimension 0 of every one is the same symbol or has
/// the same size. Nothing is proved about it yet: compiler/analysis/Samples.h
/// finds the axes of the results. With several replicas, each port that has the
/// batch dimension has it. The module's `nn.nodes` lists the names of all nodes
/// in the order in which they are computed, including those that fold away. The
/// module's `nn.node_scopes` lists the modules that made them
/// (TorchMetadata.h), where the model says so. The scope of a node also stands
/// in the locations of its ops (NodeScopes.h). `dist.annotations` has what the
/// model says of devices (dialects/dist/Annotations.h).
llvm::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
importOnnxModel(mlir::MLIRContext &context, const ImportOptions &options);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_GRAPH_IMPORT_H
