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

/// Element [i, j, ..] lies `offset + i * strides[0] + j * strides[1] + ..`
/// elements behind the first.
struct StridedLayout {
  llvm::SmallVector<int64_t> shape, strides;
  int64_t offset = 0;

  /// Row-major, without gaps.
  static StridedLayout dense(llvm::ArrayRef<int64_t> shape);
  /// The same elements, in row-major order, under another shape, if strides can
  /// say that.
  std::optional<StridedLayout> reshape(llvm::ArrayRef<int64_t> to) const;
  /// Dimension i is dimension `permutation[i]` of this.
  StridedLayout permute(llvm::ArrayRef<int64_t> permutation) const;
};

} // namespace partita::nn

#endif // PARTITA_DIALECTS_NN_STRIDEDLAYOUT_H
