//===- ModelValue.h - What a name of a model stands for ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ONNX has values that are no tensors: sequences of tensors and optionals. The
// length of a sequence and whether an optional is there are known when
// compiling, as every shape is, so both are lists of tensors that only the
// importer knows of:
//
//   seq(float[2]) x, length 3      tensors x.0, x.1, x.2
//   optional(float[2]) o           tensor o, or nothing
//   optional(seq(float[2])) s      as a sequence, or nothing
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_GRAPH_MODELVALUE_H
#define PARTITA_COMPILER_IMPORT_GRAPH_MODELVALUE_H

#include "onnx/onnx_pb.h"

#include "mlir/IR/Types.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <string>

namespace partita::import {

enum class CollectionKind { sequence, optional_tensor, optional_sequence };

/// "sequence", "optional", "optional sequence".
llvm::StringRef getKindName(CollectionKind kind);

/// A sequence or an optional. All its tensors have the same element type.
struct Collection {
  CollectionKind kind = CollectionKind::sequence;
  mlir::Type element;  ///< known also if there is no tensor
  bool present = true; ///< false: an optional without a value
  llvm::SmallVector<mlir::Value> tensors;

  bool isOptional() const { return kind != CollectionKind::sequence; }
};

/// A tensor, a collection, or nothing: an input that is omitted.
class ModelValue {
public:
  ModelValue() = default;
  ModelValue(mlir::Value tensor) : value(tensor) {}
  ModelValue(Collection collection) : list(std::move(collection)) {}

  explicit operator bool() const { return value || list; }
  /// The tensor; null if it is a collection.
  mlir::Value tensor() const { return value; }
  /// The collection; null if it is a tensor.
  const Collection *collection() const { return list ? &*list : nullptr; }
  /// The type of the elements of its tensors.
  mlir::Type element() const;
  /// Its type as ONNX describes it. Shapes are those of tensors only.
  onnx::TypeProto type() const;

private:
  mlir::Value value;
  std::optional<Collection> list;
};

/// A tensor or a sequence as an optional that has it for its value; an optional
/// as it is.
ModelValue makeOptional(const ModelValue &value);

/// A declared type, taken apart.
struct DeclaredType {
  std::optional<CollectionKind> kind; ///< nothing: a tensor
  const onnx::TypeProto::Tensor *tensor = nullptr;
};

/// Nothing for a type that cannot be imported: a map, a sparse tensor, a
/// sequence of sequences.
std::optional<DeclaredType> getDeclaredType(const onnx::TypeProto &type);

/// The name of an element of a sequence: "x.2".
std::string getElementName(llvm::StringRef sequence, size_t position);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_GRAPH_MODELVALUE_H
