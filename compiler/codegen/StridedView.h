//===- StridedView.h - Values as strided views of others --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   %s = nn.slice %qkv [0, 0, 64] to [2, 8, 128] by [1, 1, 1]   of 2x8x192
//   %r = nn.reshape %s          2x8x64 -> 2x8x4x16
//   %t = nn.transpose %r [0, 2, 1, 3]
//   view of %t: %qkv shape [2, 4, 8, 16] strides [1536, 16, 192, 1] offset 64
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_STRIDEDVIEW_H
#define PARTITA_COMPILER_CODEGEN_STRIDEDVIEW_H

#include "dialects/nn/NNInterfaces.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseSet.h"

#include <optional>

namespace partita::codegen {

/// Elements in the bytes of a value.
struct StridedView : nn::StridedLayout {
  StridedView() = default;
  StridedView(mlir::Value base, nn::StridedLayout layout)
      : StridedLayout(std::move(layout)), base(base) {}

  /// A tensor as it lies in memory.
  static StridedView dense(mlir::Value value);
  std::optional<StridedView> reshape(llvm::ArrayRef<int64_t> to) const;
  StridedView permute(llvm::ArrayRef<int64_t> permutation) const;
  /// Whether each dimension steps over all of those with smaller strides:
  /// libraries describe no other tensors. Every second column of three, read
  /// along the columns first, is one that they do not.
  bool isNested() const;

  mlir::Value base;
};

using OpSet = llvm::DenseSet<mlir::Operation *>;

/// Views `value` through those of the ops that produce it which are in `ops`,
/// down to a value that none of them produces. Adds what it looked through to
/// `used`.
std::optional<StridedView> viewOf(mlir::Value value, const OpSet &ops,
                                  OpSet &used);

/// Given the view of the result of an op, that of its operand, if there is one.
std::optional<StridedView> viewBefore(nn::ViewOpInterface op,
                                      const StridedView &after);

/// The number of which all elements are, if there is one: through broadcasts
/// and the like.
std::optional<double> getSplat(mlir::Value value);
/// The same; adds the ops it comes from to `used`.
std::optional<double> getSplat(mlir::Value value, OpSet &used);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_STRIDEDVIEW_H
