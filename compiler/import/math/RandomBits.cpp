//===- RandomBits.cpp - Random numbers of training ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/math/RandomBits.h"

#include "compiler/import/math/IndexMath.h"
#include "compiler/import/training/TrainingMode.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

/// The bits of which a random number is made: as many as a double has.
constexpr unsigned kBits = 53;

// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
// generators", 2014): its steps, and the factors of its finalizer.
constexpr uint64_t kStep = 0x9e3779b97f4a7c15, kFirst = 0xbf58476d1ce4e5b9,
                   kSecond = 0x94d049bb133111eb;

/// The finalizer: neighbours become bits that have nothing to do with each
/// other.
uint64_t mixBits(uint64_t x) {
  x = (x ^ x >> 30) * kFirst;
  x = (x ^ x >> 27) * kSecond;
  return x ^ x >> 31;
}

/// Numbers of 64 bits, whose sums and products wrap.
class Bits {
public:
  Bits(NodeImport &n, ArrayRef<int64_t> shape, bool isUnsigned = true)
      : n(n), shape(shape),
        type(isUnsigned
                 ? IntegerType::get(n.b.getContext(), 64, IntegerType::Unsigned)
                 : n.b.getI64Type()) {}

  Value constant(uint64_t value) const {
    return n.constant(DenseElementsAttr::get(RankedTensorType::get(shape, type),
                                             APInt(64, value)));
  }
  /// The bits of an i64.
  Value of(Value x) const {
    return n.make<nn::BitcastOp>(RankedTensorType::get(shape, type), x);
  }
  Value times(Value x, uint64_t factor) const {
    return n.mul(x, constant(factor));
  }
  Value flip(Value x, Value y) const { return n.binary<nn::XorOp>(x, y); }
  Value shift(Value x, unsigned places) const {
    return n.binary<nn::ShiftRightOp>(x, constant(places));
  }
  Value spread(Value x, ArrayRef<int64_t> dims) const {
    return n.broadcastDims(x, dims, shape);
  }
  Value iota(int64_t dim) const {
    return n.make<nn::IotaOp>(RankedTensorType::get(shape, type), dim);
  }

  /// mixBits of each.
  Value mix(Value x) const {
    x = times(flip(x, shift(x, 30)), kFirst);
    x = times(flip(x, shift(x, 27)), kSecond);
    return flip(x, shift(x, 31));
  }

private:
  NodeImport &n;
  const Shape shape;
  const Type type;
};

/// Random bits, `kBits` of each element: [samples, elements of one].
Value drawBits(NodeImport &n, ArrayRef<int64_t> shape) {
  const int64_t elements = product(shape);
  Value samples, seed;
  if (n.source.getMode(nn::getNodeName(n.loc)).mode == TrainingMode::learn) {
    samples = n.source.getSampleNumbers(n);
    seed = n.source.getSeed(n);
  } else {
    samples = n.indices({0});
    seed = n.reshape(n.indices({0}), {});
  }
  if (!samples || !seed)
    return {};
  int64_t count = n.shapeOf(samples)[0];
  if (elements % count != 0) {
    samples = n.part(samples, 0, 0, 1);
    count = 1;
  }
  const Bits numbers(n, {count}, /*isUnsigned=*/false), row(n, {count}),
      all(n, {count, elements / count});
  // Each sum has something of this node and this micro-batch first. So nothing
  // is shared with nodes of other stages, and nothing lies in memory.
  const uint64_t node = mixBits(++n.source.randomNodes * kStep);
  Value key = n.add(numbers.times(samples, kStep), numbers.constant(node));
  key = n.add(key, numbers.spread(seed, {}));
  key = row.mix(row.mix(row.of(key)));
  Value drawn =
      all.mix(all.times(n.add(all.spread(key, {0}), all.iota(1)), kStep));
  return all.shift(drawn, 64 - kBits);
}

/// Bits as numbers of [0, 1).
Value toUnit(NodeImport &n, Value bits, FloatType type) {
  // Not more bits than the type has, with which it would round up to 1.
  const unsigned precision = std::min(type.getFPMantissaWidth(), kBits);
  if (!bits)
    return {};
  const Bits all(n, n.shapeOf(bits));
  Value whole = n.cast(all.shift(bits, kBits - precision), type);
  return n.mul(whole, std::ldexp(1.0, -static_cast<int>(precision)));
}

} // namespace

Value makeRandomMask(NodeImport &n, ArrayRef<int64_t> shape,
                     double probability) {
  Value bits = PARTITA_TRY(drawBits(n, shape));
  const auto least =
      static_cast<uint64_t>(std::llround(std::ldexp(probability, kBits)));
  Value kept = n.ge(bits, Bits(n, n.shapeOf(bits)).constant(least));
  return n.reshape(kept, shape);
}

Value makeUniformNumbers(NodeImport &n, ArrayRef<int64_t> shape,
                         FloatType type) {
  return n.reshape(toUnit(n, drawBits(n, shape), type), shape);
}

/// By the method of Box and Muller, in f32 at least.
Value makeNormalNumbers(NodeImport &n, ArrayRef<int64_t> shape,
                        FloatType type) {
  FloatType wide = type.getWidth() < 32 ? n.b.getF32Type() : type;
  Value bits = drawBits(n, shape);
  Value turn = toUnit(n, drawBits(n, shape), wide);
  if (!bits || !turn)
    return {};
  // Of (0, 1], and near to 0 as exact as elsewhere.
  const Bits all(n, n.shapeOf(bits));
  Value whole = n.cast(n.add(bits, all.constant(1)), wide);
  Value unit = n.mul(whole, std::ldexp(1.0, -static_cast<int>(kBits)));
  Value radius = n.unary<nn::SqrtOp>(n.mul(n.unary<nn::LogOp>(unit), -2));
  Value angle = n.mul(turn, 2 * llvm::numbers::pi);
  Value normal = n.mul(radius, n.unary<nn::CosOp>(angle));
  return n.reshape(n.cast(normal, type), shape);
}

} // namespace partita::import
