//===- StridedLayout.h - Where the elements of a tensor lie -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_STRIDEDLAYOUT_H
#define PARTITA_DIALECTS_NN_STRIDEDLAYOUT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace partita::nn {

/// A strided layout. Element [i, j, ..] is at `offset + i * strides[0] + j *
/// strides[1] + ..`, counted in elements.
struct StridedLayout {
  llvm::SmallVector<int64_t> shape, strides;
  int64_t offset = 0;

  /// The row-major layout without gaps.
  static StridedLayout dense(llvm::ArrayRef<int64_t> shape);
  /// The layout of the same elements, in row-major order, with another shape;
  /// nothing if strides cannot express it.
  std::optional<StridedLayout> reshape(llvm::ArrayRef<int64_t> to) const;
  /// The layout whose dimension i is dimension `permutation[i]` of this one.
  StridedLayout permute(llvm::ArrayRef<int64_t> permutation) const;
};

} // namespace partita::nn

#endif // PARTITA_DIALECTS_NN_STRIDEDLAYOUT_H
