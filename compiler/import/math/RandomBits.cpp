//===- RandomBits.cpp - Random numbers of training ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/math/RandomBits.h"

#include "compiler/import/training/TrainingMode.h"

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
  const Bits numbers(n, {count}, /*isUnsigned=*/false), row(n, {count}),
      all(n, {count, elements / count});
  // Each sum has something of this node and this micro-batch first. So nothing
  // is shared with nodes of other stages, and nothing lies in memory.
  const uint64_t node = mixBits(++n.source.randomNodes * kStep);
  Value key =
      numbers.add(numbers.times(samples, kStep), numbers.constant(node));
  key = numbers.add(key, numbers.spread(seed, {}));
  key = row.mix(row.mix(row.of(key)));
  Value drawn =
      all.mix(all.times(all.add(all.spread(key, {0}), all.iota(1)), kStep));
  const auto least =
      static_cast<uint64_t>(std::llround(std::ldexp(probability, kBits)));
  Value kept = n.compare(nn::ComparePredicate::ge, all.shift(drawn, 64 - kBits),
                         all.constant(least));
  return n.reshape(kept, shape);
}

} // namespace partita::import
