//===- AnnotatedMesh.h - Axes found in lists of devices ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ONNX's annotations have no axes: they say which devices have which part of a
// tensor. The devices of a stage, in the order of their numbers, are the
// positions 0 to n-1. A tensor whose parts lie on them as
//
//   part of position  0 1 2 3    digits (stride, size)
//                     0 0 1 1    (2, 2)
//                     0 1 0 1    (1, 2)
//                     0 1 2 3    (1, 4)
//                     0 2 1 3    (1, 2), (2, 2)
//
// is cut along digits of the position. All digits together give the axes: here
// two of size 2, of strides 2 and 1.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SHARD_ANNOTATEDMESH_H
#define PARTITA_COMPILER_SHARD_ANNOTATEDMESH_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace partita::shard {

/// The digit `position / stride % size`.
struct Digit {
  int64_t stride = 1, size = 1;
  bool operator==(const Digit &) const = default;
};

/// The digits, outermost first, whose number is the part that each position
/// has. There are `parts` of them. Nothing if there are no such digits.
std::optional<std::vector<Digit>> findDigits(llvm::ArrayRef<int64_t> partOf,
                                             int64_t parts);

/// The axes of a stage's devices, as they become known.
class AnnotatedMesh {
public:
  /// `positions`: devices of a stage.
  explicit AnnotatedMesh(int64_t positions) : strides({1, positions}) {}

  /// Splits axes so that each digit consists of whole ones. Returns false, and
  /// changes nothing, if that is impossible.
  bool add(llvm::ArrayRef<Digit> digits);

  /// The sizes of the axes, outermost first.
  llvm::SmallVector<int64_t> getSizes() const;
  /// The axes that the digits consist of, in their order. All were added.
  llvm::SmallVector<int64_t> getAxes(llvm::ArrayRef<Digit> digits) const;

private:
  /// The strides of the axes, and the number of positions. Each divides the
  /// next.
  std::set<int64_t> strides;
};

/// Where the axis of stages stands among axes of these sizes, so that the
/// numbers of devices are row-major. `stages` has the devices of each stage,
/// ascending. `places` is the size of that axis. Of several positions this is
/// the first. Nothing if there is none.
std::optional<size_t>
findStageAxis(llvm::ArrayRef<int64_t> sizes, int64_t places,
              const std::vector<std::vector<int64_t>> &stages);

/// The place of a device along the axis of stages, which stands at `position`
/// among axes of these sizes.
int64_t getPlace(int64_t device, llvm::ArrayRef<int64_t> sizes, int64_t places,
                 size_t position);

} // namespace partita::shard

#endif // PARTITA_COMPILER_SHARD_ANNOTATEDMESH_H
