//===- Annotations.h - What a model says of devices -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ONNX's multi-device annotations, as the IR has them (`dist.annotations` on
// the module). The importer writes what a model says, and `--dist-read-
// annotations` turns it into a mesh, stages and shardings. What `--emit-onnx`
// writes into a model has the same form.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_DIST_ANNOTATIONS_H
#define PARTITA_DIALECTS_DIST_ANNOTATIONS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <string>
#include <vector>

namespace partita::dist {

inline constexpr llvm::StringLiteral kAnnotationsAttr = "dist.annotations";
/// On the module, with --emit-onnx: all nodes with their numbers in the file,
/// and which of their tensors may be annotated. Nothing is said of them yet.
inline constexpr llvm::StringLiteral kNumberedNodesAttr = "dist.numbered_nodes";

/// What of the IR a tensor of the model is.
enum class TensorKind {
  constant, ///< a constant, or computed of weights: every device has it
  weight,   ///< `where` is the symbol of an `nn.weight`
  input,    ///< `where` is the name of an input of the model
  result    ///< `where` is the node whose result it is
};

/// How a dimension of a tensor is divided. Its elements have the shape `sizes`,
/// and dimension i of that shape is cut into `parts[i]` parts.
struct DimAnnotation {
  int64_t dim = 0;
  llvm::SmallVector<int64_t, 1> sizes, parts;
};

/// How a tensor lies on devices: one of a node's `sharding_spec`.
struct TensorAnnotation {
  std::string name; ///< in the model
  TensorKind kind = TensorKind::constant;
  std::string where;
  llvm::SmallVector<int64_t> shape;
  llvm::SmallVector<DimAnnotation, 1> dims; ///< the first one outermost
  /// The devices of each part, in row-major order of the parts. Empty: those of
  /// the stage.
  std::vector<llvm::SmallVector<int64_t, 1>> devices;

  /// The number of parts of all dimensions.
  int64_t countParts() const;
};

struct NodeAnnotation {
  std::string node;
  /// Its number in the file (compiler/import/annotations/AnnotatedModel.h), if
  /// it is to be written there.
  std::optional<int64_t> number;
  std::optional<int64_t> stage;
  std::vector<TensorAnnotation> tensors;
};

/// What a model says under one of its configurations.
struct Annotations {
  std::string configuration;
  int64_t devices = 0;
  std::vector<NodeAnnotation> nodes;

  mlir::Attribute getAttr(mlir::MLIRContext *context) const;
  /// Nothing if the attribute has another form.
  static std::optional<Annotations> fromAttr(mlir::Attribute attr);
};

} // namespace partita::dist

#endif // PARTITA_DIALECTS_DIST_ANNOTATIONS_H
