//===- ModelValue.h - Tensors, sequences and optionals ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ONNX has values that are not tensors: sequences of tensors and optionals. The
// length of a sequence and the presence of an optional are known at compile
// time, as every shape is. So both are lists of tensors, and only the importer
// knows of them:
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

/// A tensor, a collection, or nothing (an omitted input).
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
  /// The element type of its tensors.
  mlir::Type element() const;
  /// Its type as ONNX describes it. Only tensors have a shape there.
  onnx::TypeProto type() const;

private:
  mlir::Value value;
  std::optional<Collection> list;
};

/// Wraps a tensor or a sequence in an optional. Returns an optional unchanged.
ModelValue makeOptional(const ModelValue &value);

/// The parts of a declared type.
struct DeclaredType {
  std::optional<CollectionKind> kind; ///< nothing: a tensor
  const onnx::TypeProto::Tensor *tensor = nullptr;
};

/// Takes a declared type apart. Returns nothing for a type that cannot be
/// imported: a map, a sparse tensor, a sequence of sequences.
std::optional<DeclaredType> getDeclaredType(const onnx::TypeProto &type);

/// The name of an element of a sequence: "x.2".
std::string getElementName(llvm::StringRef sequence, size_t position);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_GRAPH_MODELVALUE_H
