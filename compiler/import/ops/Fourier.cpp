//===- Fourier.cpp - Fourier transforms as products -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/OpTable.h"
#include "compiler/import/math/IndexMath.h"
#include "compiler/import/ops/Contraction.h"

#include <cmath>

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

/// cos and sin of 2 pi j k / n, j < rows, k < columns: [rows, columns]. Made of
/// their places, so that nothing of that size is in the IR; the product j k is
/// reduced modulo n while it is a whole number.
struct Waves {
  Value cos, sin;
};
Waves makeWaves(NodeImport &n, int64_t rows, int64_t columns, int64_t size,
                Type element) {
  Shape shape{rows, columns};
  Value product = n.mul(makeIota(n, shape, 0), makeIota(n, shape, 1));
  Value turn = n.binary<nn::RemOp>(product, size);
  Type wide = n.b.getF64Type();
  Value angle = n.mul(n.cast(turn, wide), 2 * M_PI / static_cast<double>(size));
  return {n.cast(n.unary<nn::CosOp>(angle), element),
          n.cast(n.unary<nn::SinOp>(angle), element)};
}

struct Complex {
  Value real, imaginary; ///< null: 0
};

Value sum(NodeImport &n, Value x, Value y, double sign) {
  if (!x || !y)
    return x ? x : n.mul(y, sign);
  return sign > 0 ? n.add(x, y) : n.sub(x, y);
}

/// The transform along the last dimension, of `size` elements, `columns` of the
/// result's.
Complex transform(NodeImport &n, Complex x, int64_t size, int64_t columns,
                  bool inverse) {
  Waves waves = makeWaves(n, size, columns, size, n.elementOf(x.real));
  int64_t last = n.typeOf(x.real).getRank() - 1;
  auto times = [&](Value value, Value wave) {
    return makeDot(n, value, wave, 0, last, 0);
  };
  // (a + b i) (cos -+ i sin)
  double sign = inverse ? 1 : -1;
  Complex y{
      sum(n, times(x.real, waves.cos), times(x.imaginary, waves.sin), -sign),
      sum(n, times(x.imaginary, waves.cos), times(x.real, waves.sin), sign)};
  if (inverse) {
    y.real = n.mul(y.real, 1.0 / static_cast<double>(size));
    y.imaginary = n.mul(y.imaginary, 1.0 / static_cast<double>(size));
  }
  return y;
}

/// The last dimension, of 1 or 2, taken apart.
Complex split(NodeImport &n, Value x) {
  if (!x)
    return {};
  const int64_t last = n.typeOf(x).getRank() - 1;
  return {n.at(x, last, 0),
          n.shapeOf(x)[last] == 2 ? n.at(x, last, 1) : Value()};
}

Value join(NodeImport &n, Complex x) {
  return x.real ? n.stack({x.real, x.imaginary}, n.typeOf(x.real).getRank())
                : Value();
}

/// One number that must be known, or a default.
FailureOr<int64_t> getNumber(NodeImport &n, unsigned i, StringRef what,
                             int64_t byDefault) {
  return n.input(i) ? n.constantInt(i, what) : byDefault;
}

LogicalResult importDFT(NodeImport &n) {
  Value x = n.input(0);
  Shape shape(n.shapeOf(x));
  int64_t rank = shape.size();
  bool inverse = n.intAttr("inverse", 0) != 0,
       oneSided = n.intAttr("onesided", 0) != 0;
  if (rank < 2 || (shape.back() != 1 && shape.back() != 2))
    return n.error("the input's last dimension must be 1 or 2");
  int64_t given =
      PARTITA_TRY(n.opset < 20 ? FailureOr<int64_t>(n.intAttr("axis", 1))
                               : getNumber(n, 2, "axis", -2));
  int64_t axis = PARTITA_TRY(n.axis(given, rank));
  if (axis == rank - 1)
    return n.error("the axis is that of real and imaginary parts");
  int64_t present = shape[axis];
  int64_t size = PARTITA_TRY(getNumber(
      n, 1, "dft_length", inverse && oneSided ? 2 * (present - 1) : present));
  if (size == 0 && !oneSided) {
    shape[axis] = 0;
    shape.back() = 2;
    return n.result(0, n.splat(0, shape, n.elementOf(x)));
  }
  if (size < 1 || size > (1 << 20))
    return n.error("a transform of length " + Twine(size) + " is not possible");
  // One-sided backward: the other side is the mirror image's conjugate.
  int64_t wanted = inverse && oneSided ? size / 2 + 1 : size;
  Shape low(rank, 0), high(rank, 0);
  high[axis] = wanted - present;
  x = padOrCrop(n, x, low, high);
  Complex parts = split(n, x);
  Shape permutation = toLast(rank - 1, axis), back = fromLast(rank - 1, axis);
  parts = {n.transpose(parts.real, permutation),
           n.transpose(parts.imaginary, permutation)};
  if (inverse && oneSided) {
    int64_t last = rank - 2, count = (size - 1) / 2;
    auto mirror = [&](Value v, bool negate) {
      if (!v || count == 0)
        return v;
      Value other = n.reverse(n.part(v, last, 1, 1 + count), {last});
      return n.concat({v, negate ? n.unary<nn::NegOp>(other) : other}, last);
    };
    parts = {mirror(parts.real, false), mirror(parts.imaginary, true)};
  }
  if (!parts.real)
    return failure();
  int64_t columns = oneSided && !inverse ? size / 2 + 1 : size;
  Complex y = transform(n, parts, size, columns, inverse);
  y = {n.transpose(y.real, back), n.transpose(y.imaginary, back)};
  return n.result(0,
                  inverse && oneSided ? n.stack(y.real, rank - 1) : join(n, y));
}

/// Transforms of the frames of a signal, that overlap.
LogicalResult importSTFT(NodeImport &n) {
  Value signal = n.input(0), window = n.input(2);
  Shape shape(n.shapeOf(signal));
  if (shape.size() == 2)
    shape.push_back(1);
  if (shape.size() != 3 || (shape[2] != 1 && shape[2] != 2))
    return n.error("the signal must have the shape [batch, length, 1 or 2]");
  signal = n.reshape(signal, shape);
  int64_t step = PARTITA_TRY(getNumber(n, 1, "frame_step", 0));
  int64_t byDefault =
      window && n.typeOf(window).getRank() == 1 ? n.shapeOf(window)[0] : 0;
  int64_t size = PARTITA_TRY(getNumber(n, 3, "frame_length", byDefault));
  if (step < 1 || size < 1 || size > shape[1] ||
      (window && n.shapeOf(window) != ArrayRef<int64_t>(size)))
    return n.error("frame_step, frame_length and window do not fit the signal");
  int64_t frames = (shape[1] - size) / step + 1;
  if (frames * size > (1 << 24))
    return n.error("there are too many frames");
  Shape places;
  for (int64_t frame = 0; frame < frames; ++frame)
    for (int64_t i = 0; i < size; ++i)
      places.push_back(frame * step + i);
  Value framed = n.reshape(n.gather(signal, n.indices(places), 1),
                           {shape[0], frames, size, shape[2]});
  if (window)
    framed = n.mul(framed, n.broadcastDims(window, {2},
                                           {shape[0], frames, size, shape[2]}));
  if (!framed)
    return failure();
  bool oneSided = n.intAttr("onesided", 1) != 0;
  Complex y = transform(n, split(n, framed), size,
                        oneSided ? size / 2 + 1 : size, /*inverse=*/false);
  return n.result(0, join(n, y));
}

const OpRow fourierOps[] = {
    {"DFT", 17, 20, importDFT},
    {"STFT", 17, 17, importSTFT},
};

} // namespace

ArrayRef<OpRow> getFourierOps() { return fourierOps; }

} // namespace partita::import
