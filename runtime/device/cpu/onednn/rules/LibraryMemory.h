//===- LibraryMemory.h - Memory that a library call may take ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The memory that oneDNN takes for a call depends on the processor that runs
// it, which the compiler does not know. So the plan sets bounds, and the
// runtime keeps them: it chooses an implementation of the library that stays
// within them.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_RULES_LIBRARYMEMORY_H
#define PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_RULES_LIBRARYMEMORY_H

#include "runtime/abi/plan_generated.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace partita::rules {

/// The properties of a library call that its memory depends on.
struct CallShape {
  abi::CallKind kind = abi::CallKind::dot;
  /// The extents of each operand, and of the result.
  std::vector<std::span<const int64_t>> operands;
  int64_t groups = 1;
  bool integers = false;     ///< the second operand has elements of 8 bits
  bool halves = false;       ///< it has elements of bf16
  bool winograd = false;     ///< a convolution by Winograd's method
  bool resets_first = false; ///< a gru that resets before its product
  int64_t bits = 8;          ///< of a number in packed weights
};

/// Room, in bytes, for a reordered copy of the second operand in the library's
/// own order, if the operand is constant. Nothing if the library reads it in
/// its plain layout. No other operand is reordered.
std::optional<int64_t> packedRoom(const CallShape &call);

/// Bytes of scratch on each core beyond `kLibraryWorkspace`. `packed`: the
/// second operand is constant, and is reordered when the model is loaded.
int64_t workspaceRoom(const CallShape &call, bool packed);

/// Room, in bytes, for the filter [O, I/G, spatial..] of a convolution in the
/// library's own order. The library pads extents to whole blocks.
int64_t packedFilterRoom(std::span<const int64_t> dims, int64_t groups);

/// A convolution of 3x3 windows with stride 1. Its result is
/// [images, outputs, height, width].
struct WindowedImages {
  int64_t images = 1, inputs = 1, outputs = 1, height = 1, width = 1;
};

/// Such a convolution may be computed by Winograd's method. The next three
/// functions say what the method takes.
///
/// The largest side of the tiles of the result: 2 or 4. The library too cuts
/// images of few tiles into small tiles.
int64_t winogradTileSide(const WindowedImages &shape);

/// Room, in bytes, for the transformed filter.
int64_t winogradFilterRoom(const WindowedImages &shape);

/// Room, in bytes, on each core for the images in the library's order and for
/// its scratch.
int64_t winogradRoom(const WindowedImages &shape);

/// The bytes of scratch that a library call has on each core unless the plan
/// says more.
inline constexpr int64_t kLibraryWorkspace = int64_t(1) << 20;

/// The bytes beyond that for a product of bf16, whose left side the library may
/// copy, transposed and in pairs.
inline constexpr int64_t kHalfProductRoom = int64_t(2) << 20;

/// The number of rows of the scores that attention computes at a time. They are
/// enough to make packing k worth while, and few enough to stay in the
/// second-level cache.
int64_t attentionBlockRows(int64_t rows);

/// Bytes for the scores of one block, [rows, columns] of f32, on each core. A
/// multiple of kScratchAlignment.
int64_t attentionScoreRoom(int64_t rows, int64_t columns);

/// Bytes for one state, [batch, hidden] of f32, of a recurrent layer; and for
/// all its states and its gates' sums, [batch, sums], while it runs.
int64_t recurrentStateRoom(int64_t batch, int64_t hidden);
int64_t recurrentRoom(int64_t batch, int64_t hidden, int64_t sums);

/// At most so many rows are multiplied by packed weights as these are unpacked.
inline constexpr int64_t kFewRows = 8;

/// The part of the result [rows, columns] of a product with packed weights that
/// a core computes at a time. `depth`: numbers in a row of weights.
struct PackedDotTiles {
  int64_t rows, columns;
  int64_t step; ///< columns that unpacked weights have room for
};
PackedDotTiles tilePackedDot(int64_t rows, int64_t columns, int64_t depth);

/// Bytes on each core for such a product: the rows of x in another order, if
/// they are few; or else the unpacked weights of a tile. A multiple of
/// kScratchAlignment.
int64_t packedDotRoom(int64_t rows, int64_t columns, int64_t depth);

/// The extents of a product of rows with matrices that indices choose.
struct ExpertDotShape {
  int64_t rows, columns;
  int64_t depth; ///< numbers in a row of weights
  int64_t experts;
};
/// The part that a core computes at a time. It has `rows` of x with the same
/// index, or fewer.
PackedDotTiles tileExpertDot(const ExpertDotShape &shape);
/// Bytes on each core: a part of x, of the weights and of the result, and the
/// list of rows by index, of which one is used. A multiple of
/// kScratchAlignment.
int64_t expertDotRoom(const ExpertDotShape &shape);
/// The same for the derivative to the matrices: `rows` of x are added at a time
/// to as many rows of a matrix as there are `columns`.
PackedDotTiles tileExpertOuter(const ExpertDotShape &shape);
int64_t expertOuterRoom(const ExpertDotShape &shape);
/// Bytes of the list.
int64_t expertListRoom(const ExpertDotShape &shape);

/// The alignment of each core's scratch, so that no two cores share a cache
/// line or a page.
inline constexpr int64_t kScratchAlignment = 4096;

/// Rounded up to whole units of scratch.
inline size_t alignScratch(size_t bytes) {
  constexpr size_t step = kScratchAlignment;
  return (bytes + step - 1) / step * step;
}

/// How the derivative of a convolution to its weights is cut, whatever the
/// number of threads.
struct ConvDwSlices {
  int64_t count;    ///< of slices
  int64_t channels; ///< outputs of a slice, if there is one group
  int64_t groups;   ///< of a slice
  int64_t images;   ///< at a time
};
ConvDwSlices sliceConvDw(std::span<const int64_t> x,
                         std::span<const int64_t> dy,
                         std::span<const int64_t> weights, int64_t groups);

} // namespace partita::rules

#endif // PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_RULES_LIBRARYMEMORY_H
