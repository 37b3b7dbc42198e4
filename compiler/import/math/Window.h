//===- Window.h - Sliding windows of convolutions and pooling ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_MATH_WINDOW_H
#define PARTITA_COMPILER_IMPORT_MATH_WINDOW_H

#include "compiler/import/graph/NodeImport.h"

namespace partita::import {

/// A window over the spatial dimensions of a tensor [N, C, spatial..].
struct Window {
  Shape kernel, strides, dilations, low, high;
  /// Number of positions along each dimension.
  Shape positions;
  /// The part of `high` that `ceil_mode` added. It is not a border of the
  /// model's.
  Shape excess;
};

/// Reads strides, dilations, pads, auto_pad and ceil_mode of a node. In the
/// result every position starts inside the bordered tensor. The number of
/// positions is floor((low + size + high - extent) / stride) + 1.
mlir::FailureOr<Window> getWindow(NodeImport &n, llvm::ArrayRef<int64_t> sizes,
                                  llvm::ArrayRef<int64_t> kernel);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_MATH_WINDOW_H
