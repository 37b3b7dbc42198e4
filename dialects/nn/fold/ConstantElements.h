//===- ConstantElements.h - Elements of constants, one by one ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions that the folders share: they read constant tensors by index, and
// evaluate functions of one element on constants.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_FOLD_CONSTANTELEMENTS_H
#define PARTITA_DIALECTS_NN_FOLD_CONSTANTELEMENTS_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

#include <optional>

namespace partita::nn {

/// Convert an element to a constant of the signless type in which it is
/// computed, and back.
mlir::Attribute toScalar(mlir::Attribute element);
mlir::Attribute fromScalar(mlir::Attribute scalar, mlir::Type elementType);

/// A number as an element of a tensor, rounded if it is a float. Integers wrap
/// around.
mlir::Attribute makeNumber(mlir::Type element, double value);
/// A tensor of one number everywhere.
mlir::DenseElementsAttr makeSplat(mlir::RankedTensorType type, double value);

/// A constant with one number everywhere; null if the value is none.
mlir::DenseElementsAttr getSplat(mlir::Value value);
/// That number, if it is a float.
std::optional<double> getFloatSplat(mlir::Value value);

/// Whether a constant of this type is small enough to be the result of folding.
bool isFoldable(mlir::ShapedType type);

/// Calls `visit` with each index of `shape`, in row-major order.
void forEachIndex(llvm::ArrayRef<int64_t> shape,
                  llvm::function_ref<void(llvm::ArrayRef<int64_t>)> visit);

/// A tensor whose element at an index is the element of `x` at the flat index
/// that `source` gives. Null if `x` is not dense or too large to be folded.
mlir::DenseElementsAttr
mapElements(mlir::Attribute x, mlir::RankedTensorType resultType,
            llvm::function_ref<int64_t(llvm::ArrayRef<int64_t>)> source);

/// A function of scalars, written with ops that fold.
class ScalarFunction {
public:
  using Emit = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location,
                                              mlir::ValueRange)>;

  /// `elementTypes` are those of the arguments, with signedness.
  ScalarFunction(mlir::Location loc, llvm::ArrayRef<mlir::Type> elementTypes,
                 Emit emit);

  /// The function's value on scalar constants; null if an op does not fold on
  /// them.
  mlir::Attribute evaluate(llvm::ArrayRef<mlir::Attribute> scalars);

private:
  mlir::Block block;
  mlir::Value result;
};

} // namespace partita::nn

#endif // PARTITA_DIALECTS_NN_FOLD_CONSTANTELEMENTS_H
