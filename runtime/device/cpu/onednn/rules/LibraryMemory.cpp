//===- LibraryMemory.cpp - Memory that a library call may take ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"

#include <algorithm>
#include <vector>

namespace partita::rules {
namespace {

constexpr int64_t kElement = sizeof(float);
constexpr int64_t kBlockRows = 128;
/// Fewer rows than this are one block.
constexpr int64_t kWholeRows = 192;

/// Shapes come from files: a product that has no number is the largest one.
int64_t times(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

int64_t plus(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

int64_t roundUp(int64_t value, int64_t block) {
  return value > INT64_MAX - block ? INT64_MAX
                                   : (value + block - 1) / block * block;
}

/// The library cuts output channels and columns into blocks of 16, 32, 48 or
/// 64, as it finds best.
int64_t blocked(int64_t extent) {
  return std::max(roundUp(extent, 64), roundUp(extent, 48));
}

WindowedImages imagesOf(const CallShape &conv) {
  const std::span<const int64_t> result = conv.operands[2];
  return {result[0], conv.operands[0][1], result[1], result[2], result[3]};
}

} // namespace

/// Bytes of sums behind each column or output channel, at most: the library
/// lays integers of 8 bits out in groups of four along the summed dimension,
/// and appends sums of its own.
static constexpr int64_t kSumBytes = 16;

/// A constant right side [B.., K, N] of a matrix product in the library's own
/// order. The library pads extents to whole blocks: `rows`, along K. `sums`:
/// bytes behind each column.
static int64_t matrixRoom(std::span<const int64_t> dims, int64_t element,
                          int64_t rows, int64_t sums = 0) {
  int64_t bytes = element;
  size_t rank = dims.size();
  for (size_t i = 0; i < rank; ++i)
    bytes = times(bytes, i + 1 == rank   ? blocked(dims[i])
                         : i + 2 == rank ? plus(roundUp(dims[i], rows), sums)
                                         : dims[i]);
  return bytes;
}

static int64_t packedMatrixRoom(std::span<const int64_t> dims) {
  return matrixRoom(dims, kElement, 16);
}

namespace {

/// The filter [O, I/G, spatial..] of a convolution in the library's own order.
struct PaddedFilter {
  int64_t channels = 0; ///< of the result
  int64_t depth = 0;    ///< elements of each

  PaddedFilter(std::span<const int64_t> dims, int64_t groups) {
    if (dims.size() < 2)
      return;
    const int64_t outputs = dims[0] / std::max<int64_t>(groups, 1),
                  inputs = dims[1];
    const bool depthwise = groups > 1 && outputs == 1 && inputs == 1;
    channels = depthwise ? roundUp(groups, 16)
                         : times(groups, outputs > 32 ? blocked(outputs)
                                                      : roundUp(outputs, 16));
    depth = depthwise ? 1 : roundUp(inputs, 16);
    for (int64_t extent : dims.subspan(2))
      depth = times(depth, extent);
  }
};

} // namespace

int64_t packedFilterRoom(std::span<const int64_t> dims, int64_t groups) {
  const PaddedFilter filter(dims, groups);
  return times(times(kElement, filter.channels), filter.depth);
}

/// In the scratch, of weights that are computed in each step.
static int64_t repackedFilterRoom(std::span<const int64_t> dims,
                                  int64_t groups) {
  return roundUp(packedFilterRoom(dims, groups), kScratchAlignment);
}

static int64_t packedIntegerFilterRoom(std::span<const int64_t> dims,
                                       int64_t groups) {
  const PaddedFilter filter(dims, groups);
  return times(filter.channels, plus(filter.depth, kSumBytes));
}

/// The weights [D, G * H, H] of a recurrent layer: one matrix per direction, or
/// two for a gru that resets before its product.
static int64_t packedRecurrentRoom(std::span<const int64_t> dims,
                                   bool resets_first) {
  if (dims.size() != 3)
    return 0;
  const int64_t hidden = dims[2];
  const int64_t all[] = {hidden, dims[1]}, first[] = {hidden, 2 * hidden},
                last[] = {hidden, hidden};
  return times(dims[0], resets_first ? plus(packedMatrixRoom(first),
                                            packedMatrixRoom(last))
                                     : packedMatrixRoom(all));
}

/// What windows of one pixel see of an image that strides skip pixels of: the
/// library copies it.
static int64_t seenImageRoom(std::span<const int64_t> x,
                             std::span<const int64_t> weights,
                             std::span<const int64_t> y) {
  int64_t bytes = times(kElement, x[1]);
  for (size_t i = 2; i < x.size(); ++i) {
    if (weights[i] != 1)
      return 0;
    bytes = times(bytes, y[i]);
  }
  return roundUp(bytes, kScratchAlignment);
}

/// The filter in the library's order.
static int64_t convDxRoom(const CallShape &call) {
  return plus(
      repackedFilterRoom(call.operands[1], call.groups),
      plus(kScratchAlignment, seenImageRoom(call.operands[2], call.operands[1],
                                            call.operands[0])));
}

static int64_t pixels(std::span<const int64_t> images) {
  int64_t count = 1;
  for (int64_t extent : images.subspan(2))
    count = times(count, extent);
  return count;
}

ConvDwSlices sliceConvDw(std::span<const int64_t> x,
                         std::span<const int64_t> dy,
                         std::span<const int64_t> weights, int64_t groups) {
  constexpr int64_t kCopied = int64_t(1) << 19; // bytes, as caches hold
  const int64_t outputs = weights[0] / groups;
  ConvDwSlices slices = {groups, outputs, 1, 1};
  int64_t copied = 0;
  if (groups == 1) {
    // So many that most machines have work for each core, and so few that
    // reading the image for each of them costs little.
    slices.channels = outputs <= 64 ? 16 : outputs <= 256 ? 32 : 64;
    slices.channels = std::min(slices.channels, outputs);
    slices.count = (outputs + slices.channels - 1) / slices.channels;
  } else {
    constexpr int64_t kVector = 16;
    if (outputs == 1 && weights[1] == 1) {
      slices.groups = std::min(kVector, groups);
      slices.count = (groups + slices.groups - 1) / slices.groups;
    }
    slices.channels = times(outputs, slices.groups);
    copied = times(pixels(x), times(weights[1], slices.groups));
  }
  copied = plus(copied, times(pixels(dy), slices.channels));
  slices.images = std::clamp<int64_t>(
      kCopied / std::max<int64_t>(times(copied, kElement), 1), 1, x[0]);
  return slices;
}

/// Copies of some images, and two sums of a slice in the library's order.
static int64_t convDwRoom(const CallShape &call) {
  const std::span<const int64_t> x = call.operands[0], dy = call.operands[1],
                                 weights = call.operands[2];
  const ConvDwSlices slices = sliceConvDw(x, dy, weights, call.groups);
  const int64_t inputs = times(weights[1], slices.groups);
  auto copied = [&](std::span<const int64_t> images, int64_t channels) {
    return roundUp(
        times(times(times(slices.images, pixels(images)), channels), kElement),
        kScratchAlignment);
  };
  std::vector<int64_t> slice(weights.begin(), weights.end());
  slice[0] = slices.channels;
  int64_t room = plus(copied(dy, slices.channels),
                      times(2, repackedFilterRoom(slice, slices.groups)));
  if (call.groups > 1)
    room = plus(room, copied(x, inputs));
  std::vector<int64_t> seen(x.begin(), x.end());
  seen[1] = inputs;
  return plus(room,
              plus(2 * kScratchAlignment, seenImageRoom(seen, weights, dy)));
}

namespace {

/// Fewer large tiles than this are cut into small ones.
constexpr int64_t kLeastLargeTiles = 32;
constexpr int64_t kTransformed = 36; ///< elements of a 4x4 tile and its border
constexpr int64_t kTileScratch = int64_t(16) << 20; ///< at most, of all tiles
constexpr int64_t kLargeTileScratch = int64_t(6) << 20; ///< besides, for 4x4

int64_t tiles(const WindowedImages &shape, int64_t side) {
  return times(shape.images, times(roundUp(shape.height, side) / side,
                                   roundUp(shape.width, side) / side));
}

int64_t filterBytes(const WindowedImages &shape, int64_t elements) {
  return times(times(kElement, elements),
               times(roundUp(shape.inputs, 16), roundUp(shape.outputs, 16)));
}

} // namespace

int64_t winogradTileSide(const WindowedImages &shape) {
  return tiles(shape, 4) >= kLeastLargeTiles ? 4 : 2;
}

int64_t winogradFilterRoom(const WindowedImages &shape) {
  return filterBytes(shape, winogradTileSide(shape) == 4 ? kTransformed : 16);
}

int64_t winogradRoom(const WindowedImages &shape) {
  const int64_t channels =
      roundUp(shape.inputs, 16) + roundUp(shape.outputs, 16);
  // Images may be two elements larger than the result.
  const int64_t images =
      times(times(kElement, channels),
            times(shape.images, times(shape.height + 2, shape.width + 2)));
  // A block of 2x2 tiles in the making.
  int64_t scratch =
      times(16 * kElement * channels,
            std::min<int64_t>(times(2, tiles(shape, 2)), 256) + 16);
  if (winogradTileSide(shape) == 4) {
    const int64_t all =
        times(kTransformed * kElement * channels, tiles(shape, 4));
    scratch =
        std::max(scratch, plus(kLargeTileScratch + std::min(all, kTileScratch),
                               filterBytes(shape, kTransformed)));
  }
  return plus(images, scratch);
}

int64_t attentionBlockRows(int64_t rows) {
  return rows <= kWholeRows ? rows : kBlockRows;
}

int64_t attentionScoreRoom(int64_t rows, int64_t columns) {
  return roundUp(times(times(attentionBlockRows(rows), columns), kElement),
                 kScratchAlignment);
}

PackedDotTiles tilePackedDot(int64_t rows, int64_t columns, int64_t depth) {
  // A tile of the weights stays in the second-level cache while all of its rows
  // of x pass, which are so many that unpacking costs little.
  constexpr int64_t kTileWeights = int64_t(1) << 18, kTileRows = 256,
                    kVector = 16;
  const int64_t width =
      std::clamp(kTileWeights / std::max<int64_t>(depth, 1) / kVector * kVector,
                 kVector, kTileRows);
  const int64_t held = std::min(columns, width);
  return {std::min(rows, kTileRows), held, roundUp(held, kVector)};
}

int64_t packedDotRoom(int64_t rows, int64_t columns, int64_t depth) {
  const int64_t held =
      rows <= kFewRows ? rows : tilePackedDot(rows, columns, depth).step;
  return roundUp(times(times(held, depth), kElement), kScratchAlignment);
}

/// Fewer rows than of other products: a core copies them, too.
constexpr int64_t kExpertRows = 128;

PackedDotTiles tileExpertDot(const ExpertDotShape &shape) {
  PackedDotTiles tiles = tilePackedDot(shape.rows, shape.columns, shape.depth);
  // As many as the library's products have, if some are needed.
  constexpr int64_t kLeast = 12, kStep = 32;
  tiles.rows = shape.rows == 1 ? 1
               : shape.rows <= kLeast
                   ? kLeast
                   : std::min(roundUp(shape.rows, kStep), kExpertRows);
  return tiles;
}

int64_t expertDotRoom(const ExpertDotShape &shape) {
  const PackedDotTiles tiles = tileExpertDot(shape);
  const int64_t floats = plus(times(plus(tiles.rows, tiles.step), shape.depth),
                              times(tiles.rows, tiles.step));
  return roundUp(plus(times(floats, kElement), expertListRoom(shape)),
                 kScratchAlignment);
}

PackedDotTiles tileExpertOuter(const ExpertDotShape &shape) {
  PackedDotTiles tiles = tilePackedDot(shape.rows, shape.columns, shape.depth);
  tiles.rows = kExpertRows;
  return tiles;
}

int64_t expertOuterRoom(const ExpertDotShape &shape) {
  const PackedDotTiles tiles = tileExpertOuter(shape);
  const int64_t floats = times(tiles.rows, plus(tiles.columns, shape.depth));
  return roundUp(plus(times(floats, kElement), expertListRoom(shape)),
                 kScratchAlignment);
}

int64_t expertListRoom(const ExpertDotShape &shape) {
  // For each row its place in order, and a group of three numbers at most; and
  // where experts end.
  constexpr int64_t kInts = 4;
  return roundUp(times(plus(times(shape.rows, kInts), plus(shape.experts, 1)),
                       static_cast<int64_t>(sizeof(int32_t))),
                 64);
}

int64_t recurrentStateRoom(int64_t batch, int64_t hidden) {
  return roundUp(batch * hidden * kElement, 64);
}

int64_t recurrentRoom(int64_t batch, int64_t hidden, int64_t sums) {
  // The hidden state, the cell's, the hidden state after the reset.
  return 3 * recurrentStateRoom(batch, hidden) +
         recurrentStateRoom(batch, sums);
}

std::optional<int64_t> packedRoom(const CallShape &call) {
  switch (call.kind) {
  case abi::CallKind::dot:
    // The library pairs neighbours of bf16 along K.
    return call.integers ? matrixRoom(call.operands[1], 1, 64, kSumBytes)
           : call.halves ? matrixRoom(call.operands[1], 2, 64)
                         : packedMatrixRoom(call.operands[1]);
  case abi::CallKind::conv: {
    if (call.integers)
      return packedIntegerFilterRoom(call.operands[1], call.groups);
    const int64_t room = packedFilterRoom(call.operands[1], call.groups);
    return call.winograd ? std::max(winogradFilterRoom(imagesOf(call)), room)
                         : room;
  }
  case abi::CallKind::recurrent:
    return packedRecurrentRoom(call.operands[1], call.resets_first);
  default:
    return std::nullopt;
  }
}

int64_t workspaceRoom(const CallShape &call, bool packed) {
  switch (call.kind) {
  case abi::CallKind::dot:
    return call.halves ? kHalfProductRoom : 0;
  case abi::CallKind::conv:
    if (call.winograd)
      return winogradRoom(imagesOf(call));
    // A filter that is computed is packed in each run.
    return packed ? 0 : repackedFilterRoom(call.operands[1], call.groups);
  case abi::CallKind::conv_dx:
    return convDxRoom(call);
  case abi::CallKind::conv_dw:
    return convDwRoom(call);
  case abi::CallKind::attention:
    return attentionScoreRoom(call.operands[0][2], call.operands[1][2]);
  case abi::CallKind::recurrent:
    return recurrentRoom(call.operands[0][1], call.operands[1][2],
                         call.operands[0][3]);
  case abi::CallKind::packed_dot: {
    std::span<const int64_t> weights = call.operands[1];
    const int64_t depth = times(
        times(weights[weights.size() - 2], weights.back()), 8 / call.bits);
    return weights.size() == 4
               ? expertDotRoom(
                     {call.operands[0][0], weights[1], depth, weights[0]})
               : packedDotRoom(call.operands[0][0], weights[0], depth);
  }
  case abi::CallKind::expert_dot:
    return expertDotRoom({call.operands[0][0], call.operands[1][1],
                          call.operands[1][2], call.operands[1][0]});
  case abi::CallKind::expert_outer:
    return expertOuterRoom({call.operands[0][0], call.operands[0][1],
                            call.operands[1][1], call.operands[3][0]});
  default:
    return 0;
  }
}

} // namespace partita::rules
