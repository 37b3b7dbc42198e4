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

/// A strided view of the bytes of a value.
struct StridedView : nn::StridedLayout {
  StridedView() = default;
  StridedView(mlir::Value base, nn::StridedLayout layout)
      : StridedLayout(std::move(layout)), base(base) {}

  /// The view of all of a tensor, dense and row-major.
  static StridedView dense(mlir::Value value);
  /// The view of the same base by another layout; nothing for none.
  std::optional<StridedView>
  with(std::optional<nn::StridedLayout> layout) const;
  std::optional<StridedView> reshape(llvm::ArrayRef<int64_t> to) const;
  StridedView permute(llvm::ArrayRef<int64_t> permutation) const;
  /// Whether the stride of each dimension is at least the extent times the
  /// stride of the next smaller one. Libraries describe no other tensors.
  /// Columns 0 and 2 of a matrix of 3 columns (strides 3 and 2) are not nested.
  bool isNested() const;

  mlir::Value base;
};

using OpSet = llvm::DenseSet<mlir::Operation *>;

/// Describes `value` as a view of a constant, or of a value that no op of `ops`
/// produces, by looking through ops of `ops`. Adds those that it looked through
/// to `used`.
std::optional<StridedView> viewOf(mlir::Value value, const OpSet &ops,
                                  OpSet &used);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_STRIDEDVIEW_H
