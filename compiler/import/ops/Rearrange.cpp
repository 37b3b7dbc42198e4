//===- Rearrange.cpp - Blocks, columns and sequences put elsewhere --------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/OpTable.h"
#include "compiler/import/math/IndexCheck.h"
#include "compiler/import/math/IndexMath.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

FailureOr<int64_t> getBlockSize(NodeImport &n) {
  int64_t size = n.intAttr("blocksize", 0);
  if (n.typeOf(n.input(0)).getRank() != 4 || size < 1 || size > 65536)
    return n.error("the input must have rank 4, and blocksize be at least 1");
  return size;
}

LogicalResult importDepthToSpace(NodeImport &n) {
  Value x = n.input(0);
  int64_t s = PARTITA_TRY(getBlockSize(n));
  ArrayRef<int64_t> shape = n.shapeOf(x);
  int64_t depth = shape[1] / (s * s);
  if (shape[1] % (s * s) != 0)
    return n.error(Twine(shape[1]) + " channels are no blocks of " +
                   Twine(s * s));
  std::string mode = PARTITA_TRY(n.choice("mode", {"DCR", "CRD"}));
  Value blocks, moved;
  if (mode == "DCR") {
    blocks = n.reshape(x, {shape[0], s, s, depth, shape[2], shape[3]});
    moved = n.transpose(blocks, {0, 3, 4, 1, 5, 2});
  } else {
    blocks = n.reshape(x, {shape[0], depth, s, s, shape[2], shape[3]});
    moved = n.transpose(blocks, {0, 1, 4, 2, 5, 3});
  }
  return n.result(
      0, n.reshape(moved, {shape[0], depth, shape[2] * s, shape[3] * s}));
}

LogicalResult importSpaceToDepth(NodeImport &n) {
  Value x = n.input(0);
  int64_t s = PARTITA_TRY(getBlockSize(n));
  ArrayRef<int64_t> shape = n.shapeOf(x);
  int64_t height = shape[2] / s, width = shape[3] / s;
  if (shape[2] % s != 0 || shape[3] % s != 0)
    return n.error("the image does not divide into blocks of " + Twine(s));
  std::string mode = PARTITA_TRY(n.choice("mode", {"DCR", "CRD"}));
  Value blocks = n.reshape(x, {shape[0], shape[1], height, s, width, s});
  Value moved = n.transpose(blocks, mode == "DCR" ? Shape{0, 3, 5, 1, 2, 4}
                                                  : Shape{0, 1, 3, 5, 2, 4});
  return n.result(
      0, n.reshape(moved, {shape[0], shape[1] * s * s, height, width}));
}

LogicalResult importReverseSequence(NodeImport &n) {
  Value x = n.input(0), lengths = n.input(1);
  ArrayRef<int64_t> shape = n.shapeOf(x);
  int64_t time = n.intAttr("time_axis", 0), batch = n.intAttr("batch_axis", 1);
  if (shape.size() < 2 || time + batch != 1 || time < 0 || batch < 0)
    return n.error("time_axis and batch_axis must be 0 and 1");
  if (n.shapeOf(lengths) != shape.slice(batch, 1))
    return n.error("sequence_lens must have one element a sequence");
  // Of nothing, any length does.
  if (!llvm::is_contained(shape, 0))
    PARTITA_TRY(checkRange(n, lengths, NumberRange{0, shape[time]},
                           {1, "sequence_lens"}));
  Value place = makeIota(n, shape, time);
  Value length =
      n.broadcastDims(n.cast(lengths, n.b.getI64Type()), {batch}, shape);
  Value isInside = n.lt(place, length);
  Value mirrored = n.add(n.sub(length, place), -1);
  Value from = PARTITA_TRY(n.select(isInside, mirrored, place));
  if (llvm::is_contained(shape, 0))
    return n.result(0, x);
  return n.result(0, n.make<nn::GatherElementsOp>(n.typeOf(x), x, from, time));
}

/// Each row of blocks is put where its place under the window is; what overlaps
/// adds up.
LogicalResult importCol2Im(NodeImport &n) {
  Value x = n.input(0);
  ArrayRef<int64_t> shape = n.shapeOf(x);
  FailureOr<Shape> image = n.constantInts(1, "image_shape"),
                   block = n.constantInts(2, "block_shape");
  if (failed(image) || failed(block))
    return failure();
  size_t rank = image->size();
  Shape dilations = n.intsAttr("dilations").value_or(Shape(rank, 1)),
        strides = n.intsAttr("strides").value_or(Shape(rank, 1)),
        pads = n.intsAttr("pads").value_or(Shape(2 * rank, 0));
  auto isPositive = [](int64_t v) { return v >= 1 && v < (1 << 24); };
  if (shape.size() != 3 || block->size() != rank || dilations.size() != rank ||
      strides.size() != rank || pads.size() != 2 * rank ||
      !all_of(*image, isPositive) || !all_of(*block, isPositive) ||
      !all_of(dilations, isPositive) || !all_of(strides, isPositive))
    return n.error("the shapes and attributes do not fit each other");
  Shape canvas, counts;
  for (size_t i = 0; i < rank; ++i) {
    canvas.push_back((*image)[i] + pads[i] + pads[rank + i]);
    int64_t room = canvas[i] - ((*block)[i] - 1) * dilations[i] - 1;
    if (room < 0)
      return n.error("the block is larger than the image");
    counts.push_back(room / strides[i] + 1);
  }
  int64_t window = product(*block);
  if (shape[1] % window != 0 || shape[2] != product(counts))
    return n.error("the input does not have the blocks of such an image");
  int64_t channels = shape[1] / window;
  Value all;
  for (int64_t k = 0; k < window; ++k) {
    Shape wide{shape[0], channels, window, shape[2]};
    Value part = n.part(n.reshape(x, wide), 2, k, k + 1);
    Shape laidOut{shape[0], channels};
    append_range(laidOut, counts);
    part = spread(n, n.reshape(part, laidOut), 2, strides);
    if (!part)
      return failure();
    Shape low(rank + 2, 0), high(rank + 2, 0);
    int64_t rest = k;
    for (size_t i = rank; i-- > 0;) {
      int64_t start = rest % (*block)[i] * dilations[i];
      rest /= (*block)[i];
      low[i + 2] = start - pads[i];
      high[i + 2] = (*image)[i] - low[i + 2] - n.shapeOf(part)[i + 2];
    }
    part = padOrCrop(n, part, low, high);
    all = all ? n.add(all, part) : part;
  }
  return n.result(0, all);
}

/// Chooses by a condition that is known when compiling.
LogicalResult importCompress(NodeImport &n) {
  Value x = n.input(0);
  Shape condition = PARTITA_TRY(n.constantInts(1, "condition"));
  int64_t dim = 0;
  if (n.attr("axis"))
    dim = PARTITA_TRY(n.axisAttr(0, n.typeOf(x).getRank()));
  else
    x = n.reshape(x, {n.typeOf(x).getNumElements()});
  Shape chosen;
  for (auto [i, keep] : enumerate(condition))
    if (keep && static_cast<int64_t>(i) < n.shapeOf(x)[dim])
      chosen.push_back(static_cast<int64_t>(i));
  return n.result(0, n.gather(x, n.indices(chosen), dim));
}

/// Of a tensor that is known when compiling: how many there are is a shape.
LogicalResult importNonZero(NodeImport &n) {
  Shape shape(n.shapeOf(n.input(0)));
  auto values = PARTITA_TRY(n.constantFloats(0, "X"));
  int64_t rank = shape.size();
  SmallVector<Shape> places(rank);
  for (auto [i, value] : enumerate(values)) {
    if (value == 0)
      continue;
    int64_t rest = static_cast<int64_t>(i);
    for (int64_t dim = rank; dim-- > 0;) {
      places[dim].push_back(rest % shape[dim]);
      rest /= shape[dim];
    }
  }
  Shape flat;
  for (const Shape &along : places)
    append_range(flat, along);
  int64_t count = rank == 0 ? 0 : static_cast<int64_t>(places[0].size());
  return n.result(0, n.reshape(n.indices(flat), {rank, count}));
}

const OpRow rearrangeOps[] = {
    {"Col2Im", 18, 18, importCol2Im},
    {"Compress", 9, 28, importCompress},
    {"DepthToSpace", 1, 13, importDepthToSpace},
    {"NonZero", 9, 13, importNonZero},
    {"ReverseSequence", 10, 28, importReverseSequence},
    {"SpaceToDepth", 1, 28, importSpaceToDepth},
};

} // namespace

ArrayRef<OpRow> getRearrangeOps() { return rearrangeOps; }

} // namespace partita::import
