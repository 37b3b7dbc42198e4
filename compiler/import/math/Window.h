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
  /// Of `high`, the part that `ceil_mode` added: no real border.
  Shape excess;
};

/// Reads strides, dilations, pads, auto_pad and ceil_mode of a node. In the
/// result every position starts inside the bordered tensor, and floor((low +
/// size
/// + high - extent) / stride) + 1 is the number of positions.
mlir::FailureOr<Window> getWindow(NodeImport &n, llvm::ArrayRef<int64_t> sizes,
                                  llvm::ArrayRef<int64_t> kernel);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_MATH_WINDOW_H
