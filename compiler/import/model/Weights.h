//===- Weights.h - Tensors of the model as weights --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_MODEL_WEIGHTS_H
#define PARTITA_COMPILER_IMPORT_MODEL_WEIGHTS_H

#include "compiler/import/model/ModelFile.h"
#include "compiler/import/model/TorchMetadata.h"

#include "dialects/nn/NNDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace partita::import {

/// Makes values of tensors. A single number becomes an `nn.constant`, and so
/// does a small tensor of integers, because shapes are computed from those. Any
/// other tensor becomes an `nn.weight` of the module and an `nn.parameter` that
/// reads it.
class Weights {
public:
  /// `b` stands where values are to be made.
  Weights(const ModelFile &file, mlir::ModuleOp module, mlir::OpBuilder &b)
      : file(file), module(module), b(b),
        torchTensors(getTorchTensors(file.proto.graph())),
        hasInitializers(
            llvm::any_of(file.proto.graph().initializer(), isTable)) {}

  /// Whether a tensor of the model is trained unless somebody says otherwise:
  /// floats, but for scalars that are no parameters in PyTorch.
  bool mayBeTrained(llvm::StringRef name, mlir::RankedTensorType type) const;

  /// The value of a tensor of the model; null, after an error, if it is
  /// malformed. With `keep`, what may be trained becomes a weight.
  mlir::Value materialize(const onnx::TensorProto &tensor, llvm::StringRef name,
                          mlir::Location loc, bool keep = false);
  /// The same for the tensor of a node, which is no parameter. But if no
  /// initializer can be one, the model may have its parameters in nodes.
  mlir::Value materializeConstant(const onnx::TensorProto &tensor,
                                  llvm::StringRef name, mlir::Location loc);
  /// The same for values that are in no file of the model.
  mlir::Value materialize(mlir::DenseElementsAttr elements,
                          llvm::StringRef name, mlir::Location loc);

  /// The elements of a weight; null if it has more than
  /// `nn::kMaxFoldedElements`.
  mlir::DenseElementsAttr read(llvm::StringRef symbol);

  /// A weight; null if there is none of the name.
  nn::WeightOp find(llvm::StringRef symbol) {
    return entries.lookup(symbol).op;
  }

  /// Removes weights that nothing reads.
  void eraseUnused(mlir::Operation *function);

private:
  mlir::Value makeWeight(llvm::StringRef name, mlir::RankedTensorType type,
                         const std::optional<FileSpan> &span,
                         mlir::DenseElementsAttr value,
                         const onnx::TensorProto *tensor, mlir::Location loc);
  std::string makeSymbol(llvm::StringRef name);
  /// Whether a tensor holds floats, and is not a scalar.
  static bool isTable(const onnx::TensorProto &tensor);

  const ModelFile &file;
  mlir::ModuleOp module;
  mlir::OpBuilder &b;
  const llvm::StringMap<llvm::StringRef> torchTensors;
  const bool hasInitializers;
  struct Entry {
    nn::WeightOp op;
    onnx::TensorProto tensor; // where the elements are, while they are unread
    mlir::DenseElementsAttr elements;
  };
  llvm::StringMap<Entry> entries;
  mlir::Operation *last = nullptr;
};

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_MODEL_WEIGHTS_H
