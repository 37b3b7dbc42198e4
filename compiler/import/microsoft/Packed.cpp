//===- Packed.cpp - Weights of few bits, in com.microsoft -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Numbers of 2, 4 or 8 bits are packed along the last dimension of a tensor of
// bytes, the first one in the lowest bits. A block of them along that dimension
// has a scale, and a zero point.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/microsoft/Microsoft.h"

using namespace llvm;
using namespace mlir;

namespace partita::import::microsoft {

LogicalResult checkBlocks(NodeImport &n, int64_t bits, int64_t block) {
  if (bits != 2 && bits != 4 && bits != 8)
    return n.error("bits = " + Twine(bits) + "; it can be 2, 4 or 8");
  constexpr int64_t most = int64_t(1) << 30;
  if (block < 16 || block > most || !isPowerOf2_64(block))
    return n.error("block_size = " + Twine(block) +
                   "; it must be a power of two from 16 to " + Twine(most));
  return success();
}

FailureOr<Value> getZeros(NodeImport &n, Value given, ArrayRef<int64_t> blocks,
                          int64_t bits, Type element) {
  const int64_t numbers = n.typeOf(given).getNumElements();
  if (!n.elementOf(given).isUnsignedInteger(8)) {
    if (numbers != blocks[0] * blocks[1])
      return n.error("zero_points must have " + Twine(blocks[0]) + " x " +
                     Twine(blocks[1]) + " numbers");
    return n.cast(n.reshape(given, blocks), element);
  }
  const int64_t perRow = divideCeil(blocks[1] * bits, 8);
  if (numbers != blocks[0] * perRow)
    return n.error("zero_points must have " + Twine(blocks[0]) + " x " +
                   Twine(perRow) + " bytes");
  Value bytes = n.reshape(given, {blocks[0], perRow});
  Value unpacked = nn::unpack(n.b, n.loc, bytes, bits);
  return n.cast(n.slice(unpacked, {0, 0}, blocks, {1, 1}), element);
}

namespace {

/// Adds nodes that unpack bytes: the last dimension grows by 8 / bits.
void addUnpacking(Body &body, const std::string &result,
                  const std::string &packed, int64_t bits, int64_t rank) {
  if (bits == 8) {
    body.add(result + " = Identity (" + packed + ")");
    return;
  }
  body.byte(packed + "Mask", (1 << bits) - 1).ints(packed + "Axis", {rank});
  std::string parts;
  for (int64_t i = 0; i < 8 / bits; ++i) {
    const std::string part = packed + "Part" + std::to_string(i);
    body.byte(part + "At", i * bits)
        .add(part + "Low = BitShift <direction = \"RIGHT\"> (" + packed + ", " +
             part + "At)")
        .add(part + "Bits = BitwiseAnd (" + part + "Low, " + packed + "Mask)")
        .add(part + " = Unsqueeze (" + part + "Bits, " + packed + "Axis)");
    parts += (i ? ", " : "") + part;
  }
  Shape shape(static_cast<size_t>(rank), 0);
  shape.back() = -1;
  body.add(packed + "All = Concat <axis = -1> (" + parts + ")")
      .ints(packed + "Shape", shape)
      .add(result + " = Reshape (" + packed + "All, " + packed + "Shape)");
}

/// The weights of a matrix product: W of `N` rows and `K` columns.
LogicalResult importMatMulNBits(NodeImport &n) {
  const int64_t columns = n.intAttr("K", 0), rows = n.intAttr("N", 0),
                bits = n.intAttr("bits", 4), block = n.intAttr("block_size", 0);
  PARTITA_TRY(checkBlocks(n, bits, block));
  PARTITA_TRY(checkInt(n, "weight_prepacked", 0));
  PARTITA_TRY(checkOmitted(n, 4, "g_idx"));
  const int64_t blocks = divideCeil(std::max<int64_t>(columns, 1), block);
  const int64_t bytes = block * bits / 8;
  const int64_t scales = n.typeOf(n.input(2)).getNumElements();
  if (columns < 1 || rows < 1 || scales % rows || scales / rows != blocks ||
      n.typeOf(n.input(1)).getNumElements() != scales * bytes)
    return n.error("for N = " + Twine(rows) + ", K = " + Twine(columns) +
                   " and blocks of " + Twine(block) + ", B must have " +
                   Twine(rows) + " x " + Twine(blocks) + " x " + Twine(bytes) +
                   " bytes, and scales " + Twine(rows) + " x " + Twine(blocks) +
                   " numbers");
  Value x = n.input(0);
  const Type element = n.elementOf(x);
  if (!isa<FloatType>(element) || !isa<FloatType>(n.elementOf(n.input(2))))
    return n.error("A and scales must be floats");
  if (!n.elementOf(n.input(1)).isUnsignedInteger(8))
    return n.error("B must have bytes (uint8)");
  Shape shape(n.shapeOf(x));
  if (shape.empty() || shape.back() != columns)
    return n.error("the last dimension of A must be K = " + Twine(columns));
  shape.back() = rows;
  RankedTensorType type = PARTITA_TRY(n.tensor(shape, element));
  const int64_t ofBlocks[] = {rows, blocks};
  Value zeros;
  if (Value given = n.input(3))
    zeros = PARTITA_TRY(getZeros(n, given, ofBlocks, bits, element));
  Value product = n.make<nn::PackedDotOp>(
      type, x, n.reshape(n.input(1), {rows, blocks, bytes}),
      n.cast(n.reshape(n.input(2), ofBlocks), element), zeros, Value(), bits);
  if (Value bias = n.input(5))
    product = n.add(product, n.broadcastTo(bias, shape));
  return n.result(0, product);
}

/// Rows of a table of packed numbers.
LogicalResult importGatherBlockQuantized(NodeImport &n) {
  const int64_t block = n.intAttr("block_size", 128);
  const bool isPacked = n.elementOf(n.input(0)).isUnsignedInteger(8);
  const int64_t bits = isPacked ? n.intAttr("bits", 4) : 8;
  const auto type = n.typeOf(n.input(0));
  const int64_t rank = type.getRank();
  PARTITA_TRY(checkBlocks(n, bits, block));
  PARTITA_TRY(checkInt(n, "gather_axis", 0));
  int64_t along = n.intAttr("quantize_axis", 1);
  along += along < 0 ? rank : 0;
  if (rank < 2 || along != rank - 1)
    return n.error("quantize_axis must be the last one of data, which must "
                   "have two at least");
  const int64_t columns = type.getShape().back() * (8 / bits);
  const int64_t blocks = divideCeil(columns, block);
  ArrayRef<int64_t> scales = n.shapeOf(n.input(2));
  if (static_cast<int64_t>(scales.size()) != rank || scales.back() != blocks)
    return n.error("scales must have " + Twine(blocks) +
                   " numbers a row, one for each block of " + Twine(block));
  const int64_t gathered = n.typeOf(n.input(1)).getRank() + rank - 1;
  Shape split(static_cast<size_t>(gathered), 0), whole = split;
  split.back() = blocks;
  split.push_back(block);
  whole.back() = blocks * block;
  Body body(n);
  body.ints("split", split)
      .ints("whole", whole)
      .ints("zero", {0})
      .ints("last", {-1})
      .ints("end", {columns})
      .ints("endOfBlocks", {blocks})
      .ints("padding", {0, blocks * block - columns})
      .add("rows = Gather <axis = 0> (data, indices)"
           "rowScales = Gather <axis = 0> (scales, indices)"
           "blockScales = Unsqueeze (rowScales, last)");
  addUnpacking(body, "numbers", "rows", bits, gathered);
  body.add("floats = CastLike (numbers, scales)"
           "filled = Pad (floats, padding, , last)"
           "blocked = Reshape (filled, split)");
  if (isGiven(n, 3)) {
    body.add("rowZeros = Gather <axis = 0> (zero_points, indices)");
    addUnpacking(body, "zeroNumbers", "rowZeros", bits, gathered);
    body.add("someZeros = Slice (zeroNumbers, zero, endOfBlocks, last)"
             "zeroFloats = CastLike (someZeros, scales)"
             "zeros = Unsqueeze (zeroFloats, last)");
  } else {
    body.scalar("middle", float(isPacked ? 1 << (bits - 1) : 0))
        .add("zeros = CastLike (middle, scales)");
  }
  return body
      .add("centered = Sub (blocked, zeros)"
           "scaled = Mul (centered, blockScales)"
           "padded = Reshape (scaled, whole)"
           "output = Slice (padded, zero, end, last)")
      .expand();
}

const ForeignOp packedOps[] = {
    {"GatherBlockQuantized", "data, indices, scales, zero_points?", "output",
     "bits: int = 4, block_size: int = 128, gather_axis: int = 0, "
     "quantize_axis: int = 1",
     importGatherBlockQuantized},
    {"MatMulNBits", "A, B, scales, zero_points?, g_idx?, bias?", "Y",
     "K: int, N: int, bits: int = 4, block_size: int, accuracy_level: int, "
     "weight_prepacked: int = 0",
     importMatMulNBits},
};

} // namespace

ArrayRef<ForeignOp> getPackedOps() { return packedOps; }

} // namespace partita::import::microsoft
