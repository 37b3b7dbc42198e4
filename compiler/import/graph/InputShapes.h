//===- InputShapes.h - Static shapes of a model's inputs --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_GRAPH_INPUTSHAPES_H
#define PARTITA_COMPILER_IMPORT_GRAPH_INPUTSHAPES_H

#include "compiler/import/graph/Import.h"
#include "compiler/import/graph/ModelValue.h"

#include "onnx/onnx_pb.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringSet.h"

#include <vector>

namespace partita::import {

/// A tensor that the model takes: an input that is not an initializer, or an
/// element of one that is a sequence.
struct ModelInput {
  std::string name;
  int64_t port = 0; ///< position of the input it belongs to
  const onnx::TypeProto::Tensor *declared = nullptr;
  std::string sequence; ///< the one it is an element of; empty: none
  mlir::RankedTensorType type;
  /// Names of all dimensions in the model, and which of them have a size there.
  std::vector<std::string> dims;
  std::vector<bool> fixed;
  /// The axis along which samples are counted; nothing: it has none.
  std::optional<int64_t> sampleAxis;
  /// The value, if it is fixed when compiling.
  mlir::DenseElementsAttr value;

  /// Name of a dimension in the model; empty if it has none.
  llvm::StringRef getDimName(size_t axis) const {
    return axis < dims.size() ? llvm::StringRef(dims[axis]) : "";
  }
};

/// An input as the model has it: one of the tensors, or a collection of
/// `count` of them from `first` on.
struct InputValue {
  std::string name;
  int64_t port = 0;
  std::optional<CollectionKind> kind; ///< nothing: a tensor
  mlir::Type element;
  bool present = true; ///< false: an optional that `--absent` leaves out
  size_t first = 0, count = 0;
};

struct ModelInputs {
  std::vector<ModelInput> tensors;
  std::vector<InputValue> values;
};

/// Splits sequences and optionals into tensors, as `--length` and `--absent`
/// say. Their types are not known yet. Emits errors for types that are not
/// supported, for lengths that are not given, for elements whose name another
/// input has, and for options that fit no input.
mlir::FailureOr<ModelInputs> takeInputsApart(const onnx::GraphProto &graph,
                                             const ImportOptions &options,
                                             mlir::Location loc);

/// The end of a message about an unknown name: a similar known name ("; did you
/// mean 'x'?"), or else `lead` and all known names.
std::string suggestName(llvm::StringRef name, llvm::StringRef lead,
                        const llvm::StringSet<> &known);

/// Gives every input a static shape. Sizes come from the model, from `--shape`
/// and `--dim`, and from the values of fixed inputs. A symbolic dimension has
/// the same size wherever its name stands. Elements of sequences are the
/// exception: their sizes may differ, so `--shape x.0=6` binds no dimension.
/// Emits errors for sizes that contradict each other, for names in the options
/// that the model does not have, and for sizes that remain unknown.
mlir::FailureOr<ModelInputs> bindInputs(const onnx::GraphProto &graph,
                                        const ImportOptions &options,
                                        mlir::Location loc);

/// Says along which axis of each input samples are counted: as `--samples`
/// says, or else along dimension 0 if all inputs agree in it. With
/// `options.sampleCount` they get that size there. Emits errors for inputs and
/// axes that do not exist, and for numbers of samples that differ.
llvm::LogicalResult findSampleAxes(std::vector<ModelInput> &inputs,
                                   const ImportOptions &options,
                                   mlir::Location loc);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_GRAPH_INPUTSHAPES_H
