//===- PackedProduct.cpp - Products with dequantised weights --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/math/IntegerProduct.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

/// Weights [N, K] that are packed in blocks along K.
class Packer {
public:
  Packer(NodeImport &n, const Dequantized &known, int64_t depthDim)
      : n(n), known(known), depthDim(depthDim),
        type(cast<IntegerType>(n.elementOf(known.numbers.value))),
        bits(type.getWidth()), rows(shape()[1 - depthDim]),
        depth(shape()[depthDim]) {}

  /// Whether scales are as packed weights have them.
  bool choose() {
    RankedTensorType scale = n.typeOf(known.scale);
    if (known.block > 0) {
      block = known.block;
      blocks = divideCeil(depth, block);
      Shape expected(shape());
      expected[depthDim] = blocks;
      return known.axis == depthDim && isPowerOf2_64(block) &&
             block >= kLeast && scale.getShape() == ArrayRef(expected);
    }
    // One scale for each row, or for all. Few blocks repeat it.
    constexpr uint64_t kMost = 256;
    block = static_cast<int64_t>(std::clamp<uint64_t>(
        PowerOf2Ceil(static_cast<uint64_t>(depth)), kLeast, kMost));
    blocks = divideCeil(depth, block);
    return scale.getNumElements() == 1 ||
           (known.axis == 1 - depthDim && scale.getRank() == 1 &&
            scale.getDimSize(0) == rows);
  }

  Value multiply(Value x) {
    Shape result(n.shapeOf(x));
    result.back() = rows;
    RankedTensorType made = n.tensor(result, n.elementOf(x));
    Value bytes = pack(), scales = spread(known.scale);
    if (!made || !bytes || !scales)
      return {};
    Value zeros;
    // Signed numbers are moved up by what stands for 0 by itself.
    if (known.numbers.zero)
      zeros = move(spread(known.numbers.zero));
    else if (type.isUnsigned())
      zeros = n.splat(0, scales);
    return n.make<nn::PackedDotOp>(made, x, bytes, scales, zeros, Value(),
                                   bits);
  }

private:
  static constexpr int64_t kLeast = 16; ///< numbers in a block: C1 of the op

  ArrayRef<int64_t> shape() const { return n.shapeOf(known.numbers.value); }
  double half() const {
    return type.isUnsigned() ? 0
                             : static_cast<double>(int64_t(1) << (bits - 1));
  }
  Value move(Value value) { return half() == 0 ? value : n.add(value, half()); }

  /// [N, K] instead of [K, N].
  Value turn(Value value) {
    return depthDim == 1 ? value : n.transpose(value, {1, 0});
  }

  /// A scale, or a zero point, for each block: floats [N, B].
  Value spread(Value parameter) {
    const int64_t to[] = {rows, blocks};
    Value floats = n.cast(parameter, n.b.getF32Type());
    if (known.block > 0)
      return turn(floats);
    return n.typeOf(floats).getNumElements() == 1
               ? n.broadcastTo(n.reshape(floats, {}), to)
               : n.broadcastDims(floats, {0}, to);
  }

  /// Bytes [N, B, P]; the first number of a byte is in its lowest bits.
  Value pack() {
    const auto byte = n.b.getIntegerType(8, /*isSigned=*/false);
    Value wide = move(n.cast(known.numbers.value, n.b.getI32Type()));
    Value numbers = turn(n.cast(wide, byte));
    const int64_t each = 8 / bits, bytes = block / each;
    numbers = n.pad(numbers, n.splat(0, {}, byte), {0, 0},
                    {0, blocks * block - depth});
    Value split = n.reshape(numbers, {rows, blocks, bytes, each}), packed;
    for (int64_t i = 0; i < each; ++i) {
      Value part = n.part(split, 3, i, i + 1);
      if (i > 0)
        part = n.binary<nn::ShiftLeftOp>(part, i * bits);
      packed = packed ? n.binary<nn::OrOp>(packed, part) : part;
    }
    return n.reshape(packed, {rows, blocks, bytes});
  }

  NodeImport &n;
  const Dequantized &known;
  const int64_t depthDim; ///< of the weights as they are stored
  const IntegerType type;
  const int64_t bits, rows, depth;
  int64_t block = 0, blocks = 0;
};

} // namespace

FailureOr<Value> dotPacked(NodeImport &n, Value x, Value y, int64_t yDim) {
  if (!x || !y || n.typeOf(y).getRank() != 2 || n.typeOf(x).getRank() < 1 ||
      !n.elementOf(x).isF32() || !n.elementOf(y).isF32())
    return Value();
  if (auto transpose = y.getDefiningOp<nn::TransposeOp>();
      transpose && transpose.getPermutation()[0] == 1) {
    y = transpose.getX();
    yDim = 1 - yDim;
  }
  auto it = n.source.dequantized.find(y);
  if (it == n.source.dequantized.end() ||
      n.shapeOf(x).back() != n.shapeOf(y)[yDim] || n.shapeOf(y)[0] < 1 ||
      n.shapeOf(y)[1] < 1)
    return Value();
  // What is stored, and not computed, is packed when the model is loaded.
  Value numbers = it->second.numbers.value;
  auto type = dyn_cast<IntegerType>(n.elementOf(numbers));
  if (!type || !llvm::is_contained({2u, 4u, 8u}, type.getWidth()) ||
      !isa_and_present<nn::ParameterOp, nn::ConstantOp>(
          numbers.getDefiningOp()))
    return Value();
  Packer packer(n, it->second, yDim);
  if (!packer.choose())
    return Value();
  return PARTITA_TRY(packer.multiply(x));
}

} // namespace partita::import
