//===- TensorData.h - Types and values of ONNX tensors ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_MODEL_TENSORDATA_H
#define PARTITA_COMPILER_IMPORT_MODEL_TENSORDATA_H

#include "compiler/import/model/ModelFile.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace partita::import {

/// The element type for a TensorProto::DataType; null for strings, complex
/// numbers and unknown numbers.
mlir::Type getElementType(mlir::MLIRContext *context, int32_t onnxType);

/// The TensorProto::DataType of an element type, UNDEFINED if it has none.
int32_t getOnnxType(mlir::Type elementType);

/// "float", "int64", ... as ONNX writes it.
std::string getOnnxTypeName(int32_t onnxType);

/// Number of elements of a shape; nothing if a size is negative or if the
/// tensor would not fit into memory.
std::optional<int64_t> countElements(llvm::ArrayRef<int64_t> shape);

/// The tensor's type. Emits an error at `loc` if the type is not supported.
mlir::FailureOr<mlir::RankedTensorType>
getTensorType(const onnx::TensorProto &tensor, mlir::Location loc);

/// The tensor's values, little-endian, with whole bytes for each element. They
/// are the bytes of the file if those can be used unchanged, or else a decoded
/// copy in `storage`. They may be absent (`ModelFile::filesMayBeAbsent`).
mlir::FailureOr<TensorBytes> getElementBytes(const ModelFile &file,
                                             const onnx::TensorProto &tensor,
                                             mlir::RankedTensorType type,
                                             std::string &storage,
                                             mlir::Location loc);

/// Says that absent bytes are needed.
llvm::LogicalResult reportAbsent(const onnx::TensorProto &tensor,
                                 const TensorBytes &bytes, mlir::Location loc);

/// Values in the layout of `getElementBytes` as an attribute.
mlir::DenseElementsAttr makeElements(mlir::RankedTensorType type,
                                     llvm::StringRef bytes);

/// The tensor's values as an attribute.
mlir::FailureOr<mlir::DenseElementsAttr>
readElements(const ModelFile &file, const onnx::TensorProto &tensor,
             mlir::Location loc);

/// Whether the text is a value and names no file: "8", "-0.5", "true", or
/// several with commas between them.
bool isLiteral(llvm::StringRef text);

/// The value that such a text has as a tensor of `type`: one number everywhere,
/// or a number for each element. Emits an error for a number that the elements
/// cannot have, and for another count of numbers.
mlir::FailureOr<mlir::DenseElementsAttr>
readLiteral(llvm::StringRef text, mlir::RankedTensorType type,
            llvm::StringRef inputName, mlir::Location loc);

/// Reads the value of an input from a TensorProto (.pb) or .npy file.
mlir::FailureOr<mlir::DenseElementsAttr>
readInputFile(llvm::StringRef path, llvm::StringRef inputName,
              mlir::Location loc);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_MODEL_TENSORDATA_H
