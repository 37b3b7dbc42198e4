//===- LibraryMemory.h - Memory that a library call may take ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What oneDNN takes for a call depends on the processor that runs it, which
// the compiler does not know. So the plan sets bounds, and the runtime keeps
// them: it chooses among the library's implementations one that stays within.
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

/// What the memory of a library call depends on.
struct CallShape {
  abi::CallKind kind = abi::CallKind::dot;
  /// Of each operand, and of the result.
  std::vector<std::span<const int64_t>> operands;
  int64_t groups = 1;
  bool integers = false;     ///< the second operand has elements of 8 bits
  bool winograd = false;     ///< a convolution by Winograd's method
  bool resets_first = false; ///< a gru that resets before its product
};

/// Room, in bytes, for the second operand in an order of the library's own,
/// where it is constant; nothing if the library reads it as it lies. No other
/// operand is reordered.
std::optional<int64_t> packedRoom(const CallShape &call);

/// Scratch on each core beyond `kLibraryWorkspace`. `packed`: the second
/// operand is constant, and reordered when loading.
int64_t workspaceRoom(const CallShape &call, bool packed);

/// Room, in bytes, for a constant right side [B.., K, N] of a matrix product in
/// an order of the library's own: it pads extents to whole blocks.
int64_t packedMatrixRoom(std::span<const int64_t> dims);

/// The same for the filter [O, I/G, spatial..] of a convolution.
int64_t packedFilterRoom(std::span<const int64_t> dims, int64_t groups);

/// The same for integers of 8 bits, which the library lays out in groups of
/// four along what is summed, with sums of its own behind them.
int64_t packedIntegerMatrixRoom(std::span<const int64_t> dims);
int64_t packedIntegerFilterRoom(std::span<const int64_t> dims, int64_t groups);

/// The same for the weights [D, G * H, H] of a recurrent layer: a matrix for
/// each direction; two for a gru that resets before its product.
int64_t packedRecurrentRoom(std::span<const int64_t> dims, bool resets_first);

/// A convolution of 3x3 windows that moves by one element: result
/// [images, outputs, height, width].
struct WindowedImages {
  int64_t images = 1, inputs = 1, outputs = 1, height = 1, width = 1;
};

/// Such a convolution may be computed by Winograd's method. These say what that
/// takes.
///
/// The side of the tiles of the result, at most: 2 or 4. The library too cuts
/// images of few tiles into small ones.
int64_t winogradTileSide(const WindowedImages &shape);

/// Room for the filter in that form.
int64_t winogradFilterRoom(const WindowedImages &shape);

/// Room on each core for the images in the library's order and its scratch.
int64_t winogradRoom(const WindowedImages &shape);

/// Scratch that a library call has on each core unless the plan says more.
inline constexpr int64_t kLibraryWorkspace = int64_t(1) << 20;

/// Rows of the scores that attention computes at a time: enough to make packing
/// k worth while, few enough for them to stay in the second-level cache.
int64_t attentionBlockRows(int64_t rows);

/// Scores of one block, [rows, columns] of f32, on each core; a multiple of
/// kScratchAlignment.
int64_t attentionScoreRoom(int64_t rows, int64_t columns);

/// The states, [batch, hidden] of f32, and the gates' sums, [batch, sums], of a
/// recurrent layer while it runs.
int64_t recurrentStateRoom(int64_t batch, int64_t hidden);
int64_t recurrentRoom(int64_t batch, int64_t hidden, int64_t sums);

/// Between the scratch of two cores, so that they share no cache line or page.
inline constexpr int64_t kScratchAlignment = 4096;

/// Of a convolution whose weights are computed in each step: they are packed in
/// the scratch.
int64_t repackedFilterRoom(std::span<const int64_t> dims, int64_t groups);

} // namespace partita::rules

#endif // PARTITA_RUNTIME_DEVICE_CPU_ONEDNN_RULES_LIBRARYMEMORY_H
