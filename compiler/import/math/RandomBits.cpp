//===- RandomBits.cpp - Random numbers of training ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/math/RandomBits.h"

#include "compiler/import/graph/TrainingMode.h"

#include <cmath>

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

/// The bits of which a random number is made: as many as a double has.
constexpr unsigned kBits = 53;

/// Unsigned numbers of 64 bits, whose sums and products wrap.
class Bits {
public:
  Bits(NodeImport &n, ArrayRef<int64_t> shape)
      : n(n), shape(shape),
        type(IntegerType::get(n.b.getContext(), 64, IntegerType::Unsigned)) {}

  Value constant(uint64_t value) const {
    return n.constant(DenseElementsAttr::get(RankedTensorType::get(shape, type),
                                             APInt(64, value)));
  }
  /// The bits of an i64.
  Value of(Value x) const {
    return n.make<nn::BitcastOp>(RankedTensorType::get(shape, type), x);
  }
  Value add(Value x, Value y) const { return n.binary<nn::AddOp>(x, y); }
  Value times(Value x, uint64_t factor) const {
    return n.binary<nn::MulOp>(x, constant(factor));
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

  /// The finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable
  /// pseudorandom number generators", 2014): neighbours become bits that have
  /// nothing to do with each other.
  Value mix(Value x) const {
    x = times(flip(x, shift(x, 30)), 0xbf58476d1ce4e5b9);
    x = times(flip(x, shift(x, 27)), 0x94d049bb133111eb);
    return flip(x, shift(x, 31));
  }
  /// As the generator steps: x + (place + 1) * golden ratio, mixed.
  Value draw(Value x, Value place) const {
    constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
    return mix(add(x, add(times(place, kGolden), constant(kGolden))));
  }

private:
  NodeImport &n;
  const Shape shape;
  const Type type;
};

} // namespace

Value makeRandomMask(NodeImport &n, ArrayRef<int64_t> shape,
                     double probability) {
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  Value samples = n.source.getSampleNumbers(n), seed = n.source.getSeed(n);
  if (!samples || !seed)
    return {};
  int64_t count = n.shapeOf(samples)[0];
  if (elements % count != 0) {
    samples = n.slice(samples, {0}, {1}, {1});
    count = 1;
  }
  const Bits one(n, {}), row(n, {count}), all(n, {count, elements / count});
  Value node = one.constant(n.source.randomNodes++);
  Value key = row.spread(one.draw(one.mix(one.of(seed)), node), {});
  key = row.draw(key, row.of(samples));
  Value drawn = all.draw(all.spread(key, {0}), all.iota(1));
  const auto least =
      static_cast<uint64_t>(std::llround(std::ldexp(probability, kBits)));
  Value kept = n.compare(nn::ComparePredicate::ge, all.shift(drawn, 64 - kBits),
                         all.constant(least));
  return n.reshape(kept, shape);
}

} // namespace partita::import
